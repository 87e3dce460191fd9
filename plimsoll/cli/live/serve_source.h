// ServeSource: the data of `plimsoll serve`: a trace file that may still grow, or a process that records one for us.
//
//   ServeSource source("run.trace");           // or "run.trace.partial" while it is being recorded; or "4711"
//   source.refresh();                          // reads the file again when it has changed, at most every half second
//   source.data();                             // what the page shows, nullptr while there is nothing yet
//
// A process that is already recording is followed in its file; otherwise it is asked to record into a folder of our
// own, which is removed at the end together with the recording.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "plimsoll/observe/live/live_counters.h"
#include "plimsoll/observe/live/live_questions.h"

namespace plimsoll::internal {

class ServeSource {
 public:
  // `what`: a trace's path, a process id, or "" for the only process that publishes its memory. Throws NotFound when
  // there is none, FailedPrecondition when there are several or it cannot record, Corruption for a damaged file.
  explicit ServeSource(const std::string& what);
  ~ServeSource();
  ServeSource(const ServeSource&) = delete;
  ServeSource& operator=(const ServeSource&) = delete;

  void refresh();
  std::shared_ptr<const std::string> data() const { return data_; }
  const std::string& version() const { return version_; }  // Changes with data().
  bool is_growing() const { return is_growing_; }          // More may come.
  const std::string& title() const { return title_; }
  std::string metrics() const;

 private:
  void follow(int process);
  void ask_for_the_rest() noexcept;
  bool has_changed();
  bool has_ended() const;
  void read();

  std::string title_, version_;
  int process_ = 0;                              // 0: a file.
  std::filesystem::path folder_, trace_, file_;  // Our own folder; the complete trace; the current part of it.
  std::unique_ptr<FollowedProcess> followed_;
  std::uintmax_t size_ = 0;
  std::filesystem::file_time_type changed_{};
  std::chrono::steady_clock::time_point next_{};
  std::shared_ptr<const std::string> data_;
  LiveCounters counters_;
  bool is_growing_ = true;
};

}  // namespace plimsoll::internal
