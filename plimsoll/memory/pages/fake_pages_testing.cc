#include "plimsoll/memory/pages/fake_pages_testing.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/pages/zero_pages.h"

namespace plimsoll {
namespace {

std::size_t backing_bytes(std::size_t bytes, std::size_t base_offset) {
  return (bytes + base_offset + 4095) / 4096 * 4096;
}

// Costs memory only where it is written. The base is aligned to 2 MiB before the offset.
std::byte* map_backing(std::size_t bytes, std::size_t base_offset) {
  const std::size_t kept = backing_bytes(bytes, base_offset);
  auto* start = static_cast<std::byte*>(map_zero_pages(kept + 2_MiB, "fake pages"));
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(start) % 2_MiB;
  if (head > 0) unmap_zero_pages(start, head);
  unmap_zero_pages(start + head + kept, 2_MiB - head);
  return start + head + base_offset;
}

}  // namespace

FakePageRange::FakePageRange(std::size_t bytes, const FakePagesOptions& options)
    : PageRange(map_backing(bytes, options.base_offset), bytes),
      options_(options),
      there_(bytes / options.page_bytes) {}

FakePageRange::~FakePageRange() {
  unmap_zero_pages(base() - options_.base_offset, backing_bytes(bytes(), options_.base_offset));
}

void FakePageRange::expect(std::size_t offset, std::size_t bytes, bool there) noexcept {
  const std::size_t page = options_.page_bytes;
  if (bytes == 0 || offset % page != 0 || bytes % page != 0 || offset + bytes > this->bytes()) {
    ++wrong_calls_;
    return;
  }
  for (std::size_t at = offset / page; at < (offset + bytes) / page; ++at) wrong_calls_ += there_[at] != there;
}

void FakePageRange::set(std::size_t offset, std::size_t bytes, bool there) noexcept {
  const std::size_t page = options_.page_bytes;
  for (std::size_t at = offset / page; at < (offset + bytes) / page; ++at) {
    if (there_[at] != there) there ? ++present_count_ : --present_count_;
    there_[at] = there;
  }
  most_present_ = std::max(most_present_, present_count_);
  std::memset(base() + offset, there ? 0xC3 : 0xD7, bytes);
}

bool FakePageRange::commit(std::size_t offset, std::size_t bytes) noexcept {
  ++commits_;
  expect(offset, bytes, false);
  if (refuse_all_) return false;
  if (served_before_refusal_ != kNever && served_before_refusal_-- == 0) return false;
  set(offset, bytes, true);
  return true;
}

bool FakePageRange::release(std::size_t offset, std::size_t bytes) noexcept {
  ++releases_;
  expect(offset, bytes, true);
  if (keep_all_) return false;
  set(offset, bytes, false);
  return true;
}

std::size_t FakePageRange::move(std::size_t from, std::size_t to, std::size_t bytes) noexcept {
  ++moves_;
  expect(from, bytes, true);
  expect(to, bytes, false);
  if (options_.moves == FakeMoves::kNone) return 0;
  const std::size_t pages = bytes / options_.page_bytes;
  const std::size_t moved = (options_.moves == FakeMoves::kHalf ? pages / 2 : pages) * options_.page_bytes;
  if (moved == 0) return 0;
  set(from, moved, false);
  set(to, moved, true);
  return moved;
}

std::unique_ptr<PageRange> FakePageSource::reserve(std::size_t wanted, std::size_t least) {
  auto range = std::make_unique<FakePageRange>(std::max(wanted, least), options_);
  last_ = range.get();
  return range;
}

}  // namespace plimsoll
