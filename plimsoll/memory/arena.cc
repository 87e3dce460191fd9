#include "plimsoll/memory/arena.h"

#include "plimsoll/memory/alerts.h"
#include "plimsoll/memory/arena_list.h"
#include "plimsoll/memory/internal/arena_core.h"
#include "plimsoll/memory/trace/trace_recorder.h"

namespace plimsoll {

Arena::Arena(PageSource& source, ArenaOptions options)
    : core_(std::make_unique<ArenaCore>(*this, source, std::move(options))), base_(core_->heap.base()) {
  ArenaList::instance().add(this);
  core_->start_log();
  TraceHooks::arena_made(*this);
  AlertList::instance().check(*this);
  if (core_->options.pretouch) core_->heap.touch_all_pages();
}

Arena::~Arena() {
  TraceHooks::arena_ends(*this);
  core_->uncharge_live();
  ArenaList::instance().remove(this, core_->number());
}

Chunk* Arena::take(std::size_t bytes, const BlockLabel& label, std::size_t alignment) {
  ArenaCore& core = *core_;
  Chunk* chunk = core.take_quickly(bytes, label, alignment);
  if (!chunk) [[unlikely]]
    chunk = core.take_slowly(bytes, label, alignment);
  if (core.recording()) [[unlikely]]
    TraceHooks::took(*this, *chunk);
  return chunk;
}

void Arena::give(Chunk* chunk) noexcept {
  ArenaCore& core = *core_;
  if (!core.give_quickly(chunk)) [[unlikely]]
    core.give_slowly(chunk);
}

Block Arena::allocate(std::size_t bytes, std::size_t alignment) {
  static constexpr BlockLabel kUnlabelled;
  return allocate(bytes, alignment, kUnlabelled);
}

Block Arena::allocate(std::size_t bytes, std::size_t alignment, const BlockLabel& label) {
  ArenaCore& core = *core_;
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > core.most_alignment) [[unlikely]]
    core.refuse_alignment(alignment);
  if (bytes == 0) [[unlikely]]
    return {};
  Chunk* chunk = core.take_quickly(bytes, label, alignment);
  if (!chunk) [[unlikely]]
    chunk = core.take_slowly(bytes, label, alignment);
  if (core.recording()) [[unlikely]]
    TraceHooks::took(*this, *chunk);
  return {address(chunk), bytes, this, std::uint64_t{core.heap.records().number(chunk)} << 32 | chunk->generation};
}

void Arena::deallocate(const Block& block) {
  if (!block) [[unlikely]]
    return;
  ArenaCore& core = *core_;
  if (block.owner() != this) [[unlikely]]
    core.refuse_block(block, "was not allocated here");
  Chunk* chunk = core.heap.records().find(static_cast<std::uint32_t>(block.token() >> 32));
  if (!chunk) [[unlikely]]
    core.refuse_block(block, "was not allocated here");
  if (chunk->generation != static_cast<std::uint32_t>(block.token()) || chunk->state != ChunkState::kLive ||
      address(chunk) != block.data()) [[unlikely]]
    core.refuse_block(block, "was deallocated before");
  if (!core.give_quickly(chunk)) [[unlikely]]
    core.give_slowly(chunk);
}

std::size_t Arena::trim() {
  core_->flush_deferred();
  core_->log(LoggedRequest::kTrim);
  return core_->heap.trim();
}

void Arena::collect() {
  core_->flush_deferred();
  core_->log(LoggedRequest::kCollect);
  core_->heap.collect();
}

std::size_t Arena::flush_deferred() { return core_->flush_deferred(); }
std::size_t Arena::empty_caches() {
  core_->log(LoggedRequest::kEmptyCaches);
  return core_->heap.empty_caches();
}
void Arena::set_deferred_release(bool on) noexcept { core_->mode.set(ArenaMode::kDeferred, on); }

const std::string& Arena::name() const noexcept { return core_->options.name; }
std::size_t Arena::limit() const noexcept { return core_->heap.limit(); }
std::size_t Arena::range_bytes() const noexcept { return core_->heap.range_bytes(); }
MemoryStats Arena::stats() const { return core_->stats(); }
void Arena::reset_peaks() { core_->reset_peaks(); }

std::size_t Arena::overhead_bytes() const { return core_->heap.overhead_bytes(); }
void Arena::add_overhead(std::size_t bytes) { core_->add_overhead(bytes); }
void Arena::remove_overhead(std::size_t bytes) noexcept { core_->heap.remove_overhead(bytes); }
void Arena::set_overhead_trimmer(std::size_t (*trim)()) noexcept { core_->trim_overhead = trim; }

HeapCounters Arena::move_counters() const {
  const std::lock_guard lock(core_->heap.mutex);
  return core_->heap.heap().counters();
}

std::string Arena::mover() const {
  const std::lock_guard lock(core_->heap.mutex);
  return core_->heap.heap().range().mover();
}

std::string Arena::note() const {
  const std::lock_guard lock(core_->heap.mutex);
  return core_->heap.heap().range().note();
}

std::vector<ArenaExtent> Arena::extents() const { return core_->heap.extents(); }
void Arena::for_each_live(const std::function<void(const Chunk&)>& f) const { core_->heap.for_each_live(f); }
void Arena::validate() const { core_->heap.validate(); }

}  // namespace plimsoll
