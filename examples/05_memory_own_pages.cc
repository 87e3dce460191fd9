// Bring your own pages: an arena over memory of your choice (here an unnamed file that other processes could map) has
// limits, statistics, budgets and reports like any other.
#include <plimsoll/plimsoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <iostream>

#include "check.h"

namespace pl = plimsoll;
using namespace pl::literals;

class SharedRange final : public pl::PageRange {
 public:
  using PageRange::PageRange;
  ~SharedRange() override { munmap(base(), bytes()); }
  bool commit(std::size_t, std::size_t) noexcept override { return true; }
  bool release(std::size_t offset, std::size_t bytes) noexcept override {
    return madvise(base() + offset, bytes, MADV_REMOVE) == 0;
  }
};

class SharedPages final : public pl::PageSource {
 public:
  ~SharedPages() override { close(file_); }
  std::size_t page_bytes() const noexcept override { return static_cast<std::size_t>(getpagesize()); }
  std::unique_ptr<pl::PageRange> reserve(std::size_t wanted, std::size_t) override {
    void* data = MAP_FAILED;
    if (ftruncate(file_, static_cast<off_t>(wanted)) == 0)
      data = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (data == MAP_FAILED) throw pl::Error("shared pages: cannot reserve " + pl::format_bytes(wanted));
    return std::make_unique<SharedRange>(static_cast<std::byte*>(data), wanted);
  }

 private:
  const int file_ = memfd_create("frames", MFD_CLOEXEC);
};

int main() {
  SharedPages pages;
  pl::Arena arena(pages, {.name = "shared", .limit = 16_MiB});
  const pl::Block frame = arena.allocate(10_MiB, pl::kDefaultAlignment, {.op = "frame"});
  std::memset(frame.data(), 1, frame.size());
  try {
    (void)arena.allocate(10_MiB);
    check(false, "the limit holds");
  } catch (const pl::OutOfMemory& error) {
    std::cout << error.what() << "\n";
    check(error.holders().at(0).op == "frame", "the ledger knows what holds the memory");
  }
  arena.deallocate(frame);
  check(arena.stats().peak_bytes_in_use == 10_MiB, "the statistics are the same as everywhere");
  check(arena.trim() == 10_MiB, "pages are returned");
  return 0;
}
