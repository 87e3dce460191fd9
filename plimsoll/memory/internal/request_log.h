// RequestLog: the requests an arena received since it was made, in order, so that they can be replayed under another
// limit.
//
//   RequestLog log;
//   log.add_take(4096, 64, block_id);
//   log.add_give(block_id);
//   log.for_each([](const LoggedRequest& request) { ...; return true; });   // false stops
//
// It holds at most kMostWords: programs that do not fit mostly show it in their first steps. Cost: four bytes each,
// reserved at the first request. Not thread-safe: the arena has a lock for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

struct LoggedRequest {
  enum Kind : std::uint8_t { kTake, kRefused, kGive, kEmptyCaches, kTrim, kCollect, kResetPeaks };

  Kind kind = kTake;
  std::size_t size = 0, alignment = 0;  // For kTake and kRefused: rounded as the heap is asked.
  std::size_t which = 0;                // For kGive: the block's position among the kTakes, from 0.
};

class RequestLog {
 public:
  static constexpr std::size_t kMostWords = std::size_t{1} << 16;

  // All four return false when the request cannot be kept; the log is then no longer usable. Sizes are multiples of 64
  // up to kMostLimit, alignments powers of two from 64 to 2 MiB.
  bool add_take(std::size_t size, std::size_t alignment, std::uint64_t block_id);
  bool add_refused(std::size_t size, std::size_t alignment);
  bool add_give(std::uint64_t block_id);
  bool add(LoggedRequest::Kind kind);

  std::size_t words() const noexcept { return words_.size(); }
  std::size_t bytes() const noexcept {
    return sizeof *this + words_.capacity() * sizeof(std::uint32_t) + ids_.capacity() * sizeof(Ids);
  }

  template <class F>
  void for_each(F&& f) const {
    for (std::size_t at = 0; at < words_.size();)
      if (!f(read(at))) return;
  }

 private:
  struct Ids {  // Blocks that were taken in a row and have consecutive ids.
    std::uint64_t first;
    std::size_t first_take, count;
  };

  bool add_request(LoggedRequest::Kind kind, std::size_t size, std::size_t alignment);
  bool push(std::uint32_t word);
  LoggedRequest read(std::size_t& at) const noexcept;  // Advances `at` to the next.

  std::vector<std::uint32_t> words_;
  std::vector<Ids> ids_;
  std::size_t takes_ = 0;
};

}  // namespace plimsoll::internal
