// PageSource: where an arena's memory comes from. Give an arena another one to let it manage other memory.
//
//   class MyPages : public PageSource { ... };       // reserve() is all that must be written, and a PageRange
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

// One stretch of address space whose pages come and go. All offsets and sizes are multiples of the page size.
// Calls come one at a time (the arena holds its lock).
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

  // The pages hold nothing of value; give them back. False: they are still held (or some of them), and count as before.
  [[nodiscard]] virtual bool release(std::size_t offset, std::size_t bytes) noexcept = 0;

  // (optional) Takes the pages at `from` and puts them at `to`, where there are none; contents do not matter.
  // Returns how many bytes, from the start, were moved; the arena releases and commits the rest instead.
  virtual std::size_t move(std::size_t from, std::size_t to, std::size_t bytes) noexcept;

  // (optional) Where pages are only counted and each block has a place of its own in other memory, which may change
  // without its address changing: places_blocks(), asked once, is true. Then every block is placed before it is handed
  // out (false refuses it) and removed when it goes.
  virtual bool places_blocks() const noexcept;
  [[nodiscard]] virtual bool place(std::size_t offset, std::size_t bytes) noexcept;
  virtual void remove(std::size_t offset) noexcept;

  // (optional) How move() works, for reports; "none" when it does not.
  virtual std::string mover() const;

  // (optional) What does not work here as it should, for reports; empty when everything does.
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

  // How many bytes of address space an arena with this limit (a multiple of the page size) should ask for. More than
  // the limit lets an arena that can move pages serve any request that fits; a source that cannot move leaves it at the
  // limit.
  virtual std::size_t range_bytes(std::size_t limit) const noexcept { return limit; }

  // Address space of `wanted` bytes, or as much as there is, but not less than `least`: throws OutOfMemory then.
  virtual std::unique_ptr<PageRange> reserve(std::size_t wanted, std::size_t least) = 0;
};

}  // namespace plimsoll
