// PageSource: where an arena's memory comes from. Write one to let an arena manage other memory.
//
//   class MyPages : public PageSource { ... };       // implement reserve(), and a PageRange for it
//   MyPages pages;
//   Arena arena(pages, {.name = "mine", .limit = 1_GiB});
//
// The arena never reads or writes the memory it manages, so a range may lie on a device that this process
// cannot address: `base()` is then only a number that offsets are added to.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "plimsoll/base/api.h"

namespace plimsoll {

// One range of address space whose pages are committed and released. All offsets and sizes are multiples of the page
// size. There is one call at a time (the arena holds its lock).
class PLIMSOLL_API PageRange {
 public:
  // Blocks can be aligned to what `base` is aligned to, and to 2 MiB at most.
  PageRange(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}
  PageRange(const PageRange&) = delete;
  PageRange& operator=(const PageRange&) = delete;
  virtual ~PageRange();

  std::byte* base() const noexcept { return base_; }
  std::size_t bytes() const noexcept { return bytes_; }

  // The pages will be used from now on. False refuses; then nothing changed.
  [[nodiscard]] virtual bool commit(std::size_t offset, std::size_t bytes) noexcept = 0;

  // The pages hold nothing of value; release them. False: some are still held, and count as before.
  [[nodiscard]] virtual bool release(std::size_t offset, std::size_t bytes) noexcept = 0;

  // (optional) Takes the pages at `from` and puts them at `to`, where there are none; contents do not matter.
  // Returns how many bytes, from the start, were moved; the arena releases and commits the rest instead.
  virtual std::size_t move(std::size_t from, std::size_t to, std::size_t bytes) noexcept;

  // (optional) For memory where pages are only counted and each block has a place of its own, which may change without
  // its address changing: places_blocks(), asked once, returns true. Every block is then placed before it is handed out
  // (false refuses it) and removed when it is freed.
  virtual bool places_blocks() const noexcept;
  [[nodiscard]] virtual bool place(std::size_t offset, std::size_t bytes) noexcept;
  virtual void remove(std::size_t offset) noexcept;

  // (optional) How move() works, for reports; "none" when it does not.
  virtual std::string mover() const;

  // (optional) What does not work properly here, for reports; empty when everything does.
  virtual std::string note() const;

  // (optional) Called in a forked child: only release() is used from then on.
  virtual void after_fork() noexcept;

 private:
  std::byte* const base_;
  const std::size_t bytes_;
};

class PLIMSOLL_API PageSource {
 public:
  virtual ~PageSource();

  // The unit in which pages are committed, released and moved: a power of two, at least 64.
  virtual std::size_t page_bytes() const noexcept = 0;

  // The bytes of address space that an arena with this limit (a multiple of the page size) should reserve. More than
  // the limit lets an arena that can move pages serve any request that fits; a source that cannot move pages returns
  // the limit.
  virtual std::size_t range_bytes(std::size_t limit) const noexcept { return limit; }

  // Reserves address space of `wanted` bytes, or as much as there is, but throws OutOfMemory when that is less than
  // `least`.
  virtual std::unique_ptr<PageRange> reserve(std::size_t wanted, std::size_t least) = 0;
};

}  // namespace plimsoll
