// Trace: the allocations and frees of one program run, read from a CSV file and ready to be replayed.
//
//   a,1,1605632      allocate 1605632 bytes and call them 1
//   f,1              free them
//   # step 2         a comment
//
//   Trace trace = read_trace("resnet18_train.csv.gz");   // plain or gzip, detected by content
//   trace.operations.size(); trace.peak_live;
//
// Ids are numbers; a freed one may be reused. Blocks not freed at the end are allowed and counted.
// Anything else is Corruption with file, line and reason. Blank lines and a carriage return at a line's end are
// ignored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plimsoll/cli/replay/text_lines.h"

namespace plimsoll::internal {

// One line. Slots are dense: a freed one is reused, so a replay keeps its blocks in an array of `Trace::slots`.
struct TraceOperation {
  std::size_t bytes = 0;
  std::uint32_t slot = 0;
  bool is_allocation = false;
};

struct Trace {
  std::string name;  // The file's name, without folders.
  std::vector<TraceOperation> operations;
  std::size_t slots = 0;        // Most blocks live at once.
  std::size_t allocations = 0;  // Lines that begin with `a`.
  std::size_t peak_live = 0;    // Most bytes asked for and not freed yet.
  std::size_t peak_at = 0;      // The operation that first reached it.
  std::size_t never_freed = 0;  // Blocks still live at the end.
};

// Reads a whole file; one that a TraceRecorder wrote too (recorded_trace.h). Throws NotFound when it cannot be opened,
// Corruption when it is not a trace.
Trace read_trace(const std::string& path);

// The parser: takes text in pieces of any size. It must not be used after an exception.
class TraceParser {
 public:
  static constexpr std::size_t kMaxLineBytes = 4096;

  explicit TraceParser(std::string name);
  void feed(std::string_view text);
  Trace finish();
  std::size_t lines() const noexcept { return lines_.count(); }  // Complete lines read so far.

 private:
  void line(std::string_view text);
  void allocate(std::uint64_t id, std::uint64_t bytes);
  void free(std::uint64_t id);
  [[noreturn]] void fail(const std::string& reason) const;

  struct Live {
    std::uint32_t slot;
    std::size_t bytes;
  };
  TextLines lines_;
  Trace trace_;
  std::size_t live_bytes_ = 0;
  std::unordered_map<std::uint64_t, Live> live_;
  std::vector<std::uint32_t> spare_slots_;
};

}  // namespace plimsoll::internal
