#include "plimsoll/cli/live/terminal_screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string_view>

namespace plimsoll::internal {
namespace {

std::atomic<bool> resized{false}, ended{false};

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno != EINTR && errno != EAGAIN) return;
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void on_signals(void (*changed)(int), void (*end)(int)) {
  struct sigaction action {};
  action.sa_handler = changed;
  sigaction(SIGWINCH, &action, nullptr);
  action.sa_handler = end;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
}

}  // namespace

TerminalScreen::TerminalScreen() {
  tcgetattr(STDIN_FILENO, &before_);
  on_signals([](int) { resized = true; }, [](int) { ended = true; });
  enter();
}

TerminalScreen::~TerminalScreen() {
  leave();
  on_signals(SIG_DFL, SIG_DFL);
}

void TerminalScreen::enter() {
  termios raw = before_;
  raw.c_lflag &= static_cast<tcflag_t>(~(ICANON | ECHO | ISIG));
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  write_all("\033[?1049h\033[?25l");
  measure();
}

void TerminalScreen::leave() {
  write_all("\033[?25h\033[?1049l");
  tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

void TerminalScreen::measure() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return;
  width_ = size.ws_col;
  height_ = size.ws_row;
}

// Overwrites the old contents, so that nothing flickers.
void TerminalScreen::show(const std::string& lines) {
  std::string out = "\033[H";
  std::size_t at = 0;
  for (std::size_t end; (end = lines.find('\n', at)) != std::string::npos; at = end + 1) {
    if (at > 0) out += "\r\n";
    out += lines.substr(at, end - at) + "\033[K";
  }
  write_all(out + "\033[J");
}

void TerminalScreen::stop() {
  leave();
  raise(SIGSTOP);
  enter();
}

KeyPress TerminalScreen::wait(double seconds) {
  if (resized.exchange(false)) measure();
  if (ended) return KeyPress::kQuit;
  pollfd wait{STDIN_FILENO, POLLIN, 0};
  const int ready = poll(&wait, 1, static_cast<int>(seconds * 1000));
  if (resized.exchange(false)) measure();
  if (ended || (ready > 0 && (wait.revents & (POLLHUP | POLLERR)) != 0)) return KeyPress::kQuit;
  return ready > 0 ? read_key() : KeyPress::kNone;
}

KeyPress TerminalScreen::read_key() {
  char bytes[16];
  const ssize_t count = read(STDIN_FILENO, bytes, sizeof(bytes));
  if (count <= 0) return KeyPress::kNone;
  const std::string_view typed(bytes, static_cast<std::size_t>(count));
  if (typed == "\033[A" || typed == "\033OA" || typed == "k") return KeyPress::kUp;
  if (typed == "\033[B" || typed == "\033OB" || typed == "j") return KeyPress::kDown;
  if (typed == "\033" || typed == "\x7f" || typed == "\b") return KeyPress::kBack;
  switch (typed[0]) {
    case 'q':
    case 3:  // Ctrl-C.
    case 4:  // Ctrl-D.
      return KeyPress::kQuit;
    case 26:  // Ctrl-Z.
      stop();
      return KeyPress::kNone;
    case '\r':
    case '\n':
      return KeyPress::kEnter;
    default:
      letter_ = typed[0];
      return KeyPress::kLetter;
  }
}

}  // namespace plimsoll::internal
