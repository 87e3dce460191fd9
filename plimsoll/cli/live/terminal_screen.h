// TerminalScreen: a terminal that shows whole screens and reads single keys, until it is destroyed.
//
//   TerminalScreen screen;
//   screen.show(lines);
//   const KeyPress key = screen.wait(1.0);          // KeyPress::kNone when the time is up or the size has changed
//
// Uses the alternate screen and a few common control sequences; the previous contents are restored at the end, also
// after SIGTERM and SIGHUP (wait() then returns kQuit). Ctrl-C and q return kQuit; Ctrl-Z stops the program as usual.
// One at a time.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string>

namespace plimsoll::internal {

enum class KeyPress { kNone, kQuit, kUp, kDown, kEnter, kBack, kLetter };

class TerminalScreen {
 public:
  TerminalScreen();
  ~TerminalScreen();
  TerminalScreen(const TerminalScreen&) = delete;
  TerminalScreen& operator=(const TerminalScreen&) = delete;

  std::size_t width() const noexcept { return width_; }
  std::size_t height() const noexcept { return height_; }
  void show(const std::string& lines);  // Each ends with a newline.
  KeyPress wait(double seconds);
  char letter() const noexcept { return letter_; }  // Of the last kLetter.

 private:
  void enter();
  void leave();
  void measure();
  KeyPress read_key();
  void stop();

  termios before_{};
  std::size_t width_ = 80, height_ = 24;
  char letter_ = 0;
};

}  // namespace plimsoll::internal
