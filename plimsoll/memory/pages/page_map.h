// PageMap: which pages of a range are committed, one bit each; the only record of commitment.
//
// All ranges are half-open page numbers. Scans work in words of 64 pages. The map itself is zero pages until used.
// Not thread-safe: the arena's lock protects it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

class PageMap {
 public:
  // Throws OutOfMemory when there is no memory for the bits.
  explicit PageMap(std::size_t pages);
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;
  ~PageMap();

  std::size_t count(std::size_t first, std::size_t last) const noexcept;  // Committed pages in [first, last).
  void set(std::size_t first, std::size_t last) noexcept;
  void clear(std::size_t first, std::size_t last) noexcept;

  // The first committed (or missing) page in [first, last), or `last`.
  std::size_t next_set(std::size_t first, std::size_t last) const noexcept { return next(first, last, 0); }
  std::size_t next_missing(std::size_t first, std::size_t last) const noexcept { return next(first, last, ~Word{0}); }

  // One past the last committed (or missing) page in [first, last), or `first`.
  std::size_t end_of_set(std::size_t first, std::size_t last) const noexcept { return end(first, last, 0); }
  std::size_t end_of_missing(std::size_t first, std::size_t last) const noexcept { return end(first, last, ~Word{0}); }

 private:
  using Word = std::uint64_t;
  std::size_t next(std::size_t first, std::size_t last, Word flip) const noexcept;
  std::size_t end(std::size_t first, std::size_t last, Word flip) const noexcept;
  template <class F>
  static void for_words(std::size_t first, std::size_t last, F&& f);

  Word* words_;
  std::size_t bytes_;  // Of the map itself.
};

}  // namespace plimsoll::internal
