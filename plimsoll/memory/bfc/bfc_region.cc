#include "plimsoll/memory/bfc/bfc_region.h"

#include <sys/mman.h>

#include <algorithm>
#include <functional>

#include "plimsoll/base/rounding.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kPage = 4096;

class MmapRegionSource final : public BfcRegionSource {
 public:
  std::byte* reserve(std::size_t bytes, std::size_t alignment) noexcept override {
    const std::size_t extra = alignment > kPage ? alignment : 0;
    if (bytes > SIZE_MAX - extra) return nullptr;
    void* mapped =
        mmap(nullptr, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    auto* begin = static_cast<std::byte*>(mapped);
    if (extra == 0) return begin;
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    const std::size_t before = (alignment - address % alignment) % alignment;
    const std::size_t kept = round_up(bytes, kPage);
    if (before > 0) munmap(begin, before);
    if (before + kept < bytes + extra) munmap(begin + before + kept, bytes + extra - before - kept);
    return begin + before;
  }
  void release(std::byte* data, std::size_t bytes) noexcept override { munmap(data, bytes); }
};

}  // namespace

BfcRegionSource& mmap_region_source() {
  static MmapRegionSource source;
  return source;
}

BfcRegion::BfcRegion(std::byte* data, std::size_t size)
    : data_(data),
      size_(size),
      handles_(static_cast<BfcHandle*>(std::calloc(divide_up(size, kBfcGranule), sizeof(BfcHandle)))) {}

BfcRegionList::~BfcRegionList() {
  for (const BfcRegion& region : regions_) source_.release(region.data(), region.size());
}

BfcRegion* BfcRegionList::add(std::size_t bytes, std::size_t alignment) {
  std::byte* data = source_.reserve(bytes, alignment);
  if (data == nullptr) return nullptr;
  BfcRegion region(data, bytes);
  if (!region.valid()) {
    source_.release(data, bytes);
    return nullptr;
  }
  const auto place = std::upper_bound(regions_.begin(), regions_.end(), region.end(),
                                      [](const std::byte* end, const BfcRegion& other) { return end < other.end(); });
  bytes_ += bytes;
  return &*regions_.insert(place, std::move(region));
}

void BfcRegionList::remove(std::size_t index) {
  const auto place = regions_.begin() + static_cast<std::ptrdiff_t>(index);
  source_.release(place->data(), place->size());
  bytes_ -= place->size();
  regions_.erase(place);
}

BfcRegion* BfcRegionList::find(const void* address) noexcept {
  const auto* byte = static_cast<const std::byte*>(address);
  const auto place = std::upper_bound(regions_.begin(), regions_.end(), byte,
                                      [](const std::byte* at, const BfcRegion& region) { return at < region.end(); });
  return place != regions_.end() && !std::less<>()(byte, place->data()) ? &*place : nullptr;
}

}  // namespace plimsoll::internal
