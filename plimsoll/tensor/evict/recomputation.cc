#include "plimsoll/tensor/evict/recomputation.h"

#include <fmt/format.h>

#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/tensor/evict/domain.h"
#include "plimsoll/tensor/op.h"
#include "plimsoll/tensor/run_on.h"

namespace plimsoll::evict {
namespace {

constexpr std::size_t kRunsEach = 16, kRunsMore = 1000;  // Repeats of the planned recipes before it gives up.

[[noreturn]] void refuse_repeating(std::size_t runs, std::size_t planned) {
  OutOfMemoryDetails details;
  details.what = fmt::format(
      "eviction gave up: {} operations ran to bring one dropped result back, {} were foreseen; give the budget more",
      runs, planned);
  throw OutOfMemory(std::move(details));
}

[[noreturn]] void refuse(const OutOfMemory& why, const Recipe& recipe, const std::string& for_op, std::size_t planned) {
  OutOfMemoryDetails details;
  details.what = fmt::format(
      "{}; it was computing \"{}\" again, one of {} dropped or freed results that reading what \"{}\" made takes",
      why.what(), recipe.op->name(), planned, for_op);
  details.requested = why.requested();
  details.limit = why.limit();
  details.in_use = why.in_use();
  details.smallest_sufficient_limit = why.smallest_sufficient_limit();
  details.holders = why.holders();
  details.tried = why.tried();
  throw OutOfMemory(std::move(details));
}

}  // namespace

struct Recomputation::Work {
  Work(Recipe& recipe, Device& device) : device(device) {
    const std::size_t inputs = recipe.num_inputs, outputs = recipe.num_outputs;
    in.reserve(inputs);
    refs.reserve(inputs);
    out.reserve(outputs);
    labels.reserve(outputs);
    blocks.reserve(outputs + 1);
    for (const Input& input : recipe.inputs()) {
      PLIMSOLL_CHECK(!input.value->storage || input.value->storage->version() == input.version);
      in.emplace_back(input.value->base(), input.offset, input.dtype, input.shape);
      refs.push_back({&input.shape, input.dtype});
    }
    for (const Output& output : recipe.outputs()) {
      specs.add(output.shape, output.dtype);
      labels.push_back(output.value ? output.value->label : BlockLabel{});
      if (!output.value) labels.back().op = recipe.op->name();
    }
  }
  ~Work() { give_back(); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  void give_back() noexcept {
    for (Chunk*& block : blocks)
      if (block) device.arena().give(std::exchange(block, nullptr));
  }

  // Allocates the memory and runs. Call outside all locks.
  void run(const Recipe& recipe) {
    Arena& arena = device.arena();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      Chunk* const block = specs[i].bytes() == 0 ? nullptr : arena.take(specs[i].bytes(), labels[i]);
      blocks.push_back(block);
      out.emplace_back(block ? arena.address(block) : nullptr, std::size_t{0}, specs[i].dtype, specs[i].shape);
    }
    const std::size_t bytes = recipe.op->workspace_bytes(Specs(refs), specs);
    BlockLabel label;
    label.op = recipe.op->name();
    label.category = Category::kWorkspace;
    Chunk* const scratch = bytes == 0 ? nullptr : arena.take(bytes, label);
    blocks.push_back(scratch);
    run_on(device, *recipe.op, {in, out, {scratch ? static_cast<std::byte*>(arena.address(scratch)) : nullptr, bytes}});
    if (scratch) arena.give(std::exchange(blocks.back(), nullptr));
  }

  Device& device;
  std::vector<ConstTensorView> in;
  std::vector<TensorView> out;
  std::vector<SpecRef> refs;
  SpecList specs;
  std::vector<BlockLabel> labels;
  std::vector<Chunk*> blocks;  // For the outputs, then the scratch; nullptr: published, or none.
};

void Recomputation::run(Value& target) {
  const std::string made_by = target.maker->op->name();
  ++target.locks;  // So that it stays once it is back.
  const auto end = [&]() noexcept {
    finish(target);
    clear_trash();
    --target.locks;
  };
  try {
    plan(target);
    frames_.push_back({target.maker, 0});
    while (!frames_.empty()) step();
    keep_long_ones(target);
  } catch (const OutOfMemory& why) {
    try {
      refuse(why, *frames_.back().recipe, made_by, num_planned_);
    } catch (...) {
      end();
      throw;
    }
  } catch (...) {
    end();
    throw;
  }
  end();
}

// Finds the recipes that will run, as far as is known now: how often each value without bytes will be read.
void Recomputation::plan(Value& target) {
  RecipeWalk walk(book_.new_walk());
  walk.push(target.maker);
  while (Recipe* const recipe = walk.pop()) {
    ++num_planned_;
    for (const Input& input : recipe->inputs()) {
      Value& value = *input.value;
      if (value.has_bytes()) continue;
      hold(value);
      ++value.pending;
      if (!value.is_stored()) walk.push(value.maker);
    }
  }
}

void Recomputation::hold(Value& value) {
  held_.push_back(&value);
  ++value.holds;
}

void Recomputation::step() {
  Frame& frame = frames_.back();
  Recipe& recipe = *frame.recipe;
  while (frame.locked < recipe.num_inputs) {
    Value& value = *recipe.inputs()[frame.locked].value;
    if (!value.has_bytes()) {
      hold(value);
      if (value.is_stored() && !load(value)) return;
    }
    if (!value.has_bytes()) {
      frames_.push_back({value.maker, 0});  // `frame` is invalid from here on.
      return;
    }
    ++value.locks;
    ++frame.locked;
  }
  if (num_runs_ > kRunsMore + kRunsEach * num_planned_) refuse_repeating(num_runs_, num_planned_);
  try {
    execute(recipe);
  } catch (const OutOfMemory&) {
    if (!unlock_waiting()) throw;
    return;  // Tries again.
  }
  for (const Input& input : recipe.inputs()) {
    if (input.value->pending > 0) --input.value->pending;
    if (input.value->is_orphan) hold(*input.value);
  }
  unlock(frames_.back(), false);
  frames_.pop_back();
  clear_trash();
}

// False: there was not enough room; waiting recipes have released theirs, so it is worth another try.
bool Recomputation::load(Value& value) {
  try {
    book_.load(value, lock_);
    return true;
  } catch (const OutOfMemory&) {
    if (!unlock_waiting()) throw;
    return false;
  }
}

// Frees the bytes of dead values that no recipe will read any more, or of all of them.
void Recomputation::unlock(Frame& frame, bool even_pending) noexcept {
  for (std::uint32_t i = 0; i < frame.locked; ++i) {
    Value& value = *frame.recipe->inputs()[i].value;
    --value.locks;
    const bool may_go = !value.storage && value.chunk && value.locks == 0 && (even_pending || value.pending == 0);
    if (may_go && trash_.add(*value.device, value.chunk)) value.chunk = nullptr;
  }
  frame.locked = 0;
}

bool Recomputation::unlock_waiting() noexcept {
  bool any = false;
  for (std::size_t i = 0; i + 1 < frames_.size(); ++i) {
    any |= frames_[i].locked > 0;
    unlock(frames_[i], true);
  }
  clear_trash();
  return any;
}

// Makes trashed memory available at once.
void Recomputation::clear_trash() noexcept {
  if (trash_.is_empty()) return;
  lock_.unlock();
  trash_.clear();
  lock_.lock();
}

void Recomputation::execute(Recipe& recipe) {
  ++num_runs_;
  PLIMSOLL_CHECK(recipe.domain == &domain_);
  Work work(recipe, *recipe.device);
  lock_.unlock();
  try {
    work.run(recipe);
  } catch (...) {
    work.give_back();
    lock_.lock();
    throw;
  }
  lock_.lock();
  domain_.make_room(recipe.num_outputs);
  domain_.note_again(recipe);
  publish(recipe, work);
}

void Recomputation::publish(Recipe& recipe, Work& work) noexcept {
  for (std::uint32_t i = 0; i < recipe.num_outputs; ++i) {
    Value* const value = recipe.outputs()[i].value;
    if (!value || value->has_bytes() || !work.blocks[i]) continue;
    if (value->storage) {
      StorageAccess::give_bytes(*value->storage, std::exchange(work.blocks[i], nullptr));
      domain_.add(*value);
      domain_.changed_around(*value);
    } else if (value->holds > 0) {
      value->chunk = std::exchange(work.blocks[i], nullptr);
    }
  }
  for (Chunk*& block : work.blocks)
    if (block && trash_.add(work.device, block)) block = nullptr;
}

// A value recovered through many dead values stays: each one that dies after it would make the next recomputation
// longer.
void Recomputation::keep_long_ones(Value& target) noexcept {
  const auto keep = [&](Value& value) {
    if (!value.storage || !value.maker || !value.has_bytes() || !book_.is_long_below(value)) return;
    book_.leave_maker(value, trash_);
    book_.become_leaf(value);
  };
  for (Value* const value : held_) keep(*value);
  keep(target);
}

void Recomputation::finish(Value& target) noexcept {
  for (Frame& frame : frames_) unlock(frame, true);
  frames_.clear();
  for (Value* const value : held_) {
    --value->holds;
    value->pending = 0;
    book_.queue(*value);
  }
  book_.queue(target);
  book_.end_queued(trash_);
  --target.holds;  // The caller's hold: once the value is back it needs no orphan any more. It is locked.
  for (Value* const value : held_) book_.end_orphan(*value, trash_);
  ++target.holds;
}

}  // namespace plimsoll::evict
