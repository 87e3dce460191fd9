#include "plimsoll/memory/pmr_resource.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/block_map.h"

namespace plimsoll {
namespace {

// The alignment of an arena's base, 2 MiB at most: its blocks are aligned relative to it.
std::size_t most_alignment(const Arena& arena) {
  const auto base = reinterpret_cast<std::uintptr_t>(arena.base());
  return std::min<std::size_t>(base & (~base + 1), 2_MiB);
}

[[noreturn]] void refuse(const Arena& arena, const void* data, const std::string& why) {
  throw InvalidArgument(
      fmt::format("memory_resource \"{}\": deallocate {}: {}; nothing was changed", arena.name(), data, why));
}

}  // namespace

PmrResource::PmrResource(Arena& arena)
    : arena_(arena), most_alignment_(most_alignment(arena)), blocks_(std::make_unique<BlockMap>(arena.range_bytes())) {}

PmrOutOfMemory::~PmrOutOfMemory() = default;
PmrResource::~PmrResource() = default;

std::size_t PmrResource::trim() noexcept { return blocks_->release_empty(); }
std::size_t PmrResource::overhead_bytes() const noexcept { return blocks_->bytes() + sizeof(PmrResource); }

void* PmrResource::do_allocate(std::size_t bytes, std::size_t alignment) {
  static constexpr BlockLabel kLabel{.op = "pmr"};
  if (!std::has_single_bit(alignment) || alignment > most_alignment_)
    throw InvalidArgument(fmt::format("memory_resource \"{}\": alignment {} is not a power of two up to {}",
                                      arena_.name(), alignment, most_alignment_));
  try {
    Chunk* const chunk = arena_.take(std::max<std::size_t>(bytes, 1), kLabel, std::max(alignment, kDefaultAlignment));
    blocks_->put(chunk->offset, chunk);
    return arena_.address(chunk);
  } catch (const OutOfMemory& refusal) {
    throw PmrOutOfMemory(refusal);
  }
}

void PmrResource::do_deallocate(void* data, std::size_t bytes, std::size_t) {
  if (!data) return;
  const std::size_t offset = static_cast<std::size_t>(static_cast<std::byte*>(data) - arena_.base());
  const bool ours = offset < arena_.range_bytes() && offset % kGranularity == 0;
  Chunk* const chunk = ours ? blocks_->find(offset) : nullptr;
  if (!chunk)
    refuse(arena_, data,
           ours ? "it was deallocated before or is not the start of a block" : "it was not allocated here");
  if (chunk->requested != std::max<std::size_t>(bytes, 1))
    refuse(arena_, data, fmt::format("{} bytes were asked for there, not {}", chunk->requested, bytes));
  if (!blocks_->take(offset, chunk)) refuse(arena_, data, "another thread gives it back at this moment");
  arena_.give(chunk);
}

}  // namespace plimsoll
