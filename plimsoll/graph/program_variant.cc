#include "plimsoll/graph/program_variant.h"

#include <optional>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/device/device.h"
#include "plimsoll/graph/borrowed_variables.h"
#include "plimsoll/graph/device_steps.h"
#include "plimsoll/graph/parked_variables.h"
#include "plimsoll/graph/program_context.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/tensor/interceptor.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {

struct ProgramVariant::Context final : ProgramContext {
  explicit Context(const ProgramTables& program)
      : ProgramContext(program),
        taken(program.extents.size() + program.storages.size()),
        read(program.variables.size()),
        written(program.variables.size()),
        locks(program.write_order.size()),
        extent_blocks(program.extents.size()) {}

  std::vector<StorageRef> taken;  // Extents, then results.
  std::vector<StorageRef> read;   // Of variables.
  std::vector<Storage*> written;  // The same, of those that are changed.
  std::vector<std::unique_lock<std::mutex>> locks;
  Draws draws;
  KnownPlan traced;                          // What a trace calls the program.
  std::vector<std::uint64_t> extent_blocks;  // For it.
  std::optional<SpillFile> spill;            // That the slots are of.
  std::vector<SpillSlot> slots;
  ParkedVariables parked;
  DeviceSteps there;  // Used when is_elsewhere.
};

ProgramVariant::ProgramVariant(ProgramTables tables) : tables_(std::move(tables)) {}
ProgramVariant::~ProgramVariant() = default;

std::unique_ptr<ProgramVariant::Context> ProgramVariant::obtain_context() {
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      std::unique_ptr<Context> context = std::move(spare_.back());
      spare_.pop_back();
      return context;
    }
    spare_.reserve(spare_.capacity() + 1);  // Room to give it back.
  }
  return std::make_unique<Context>(tables_);
}

void ProgramVariant::give_back(std::unique_ptr<Context> context) noexcept {
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(context));
}

void ProgramVariant::release_slots() noexcept {
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Context>& context : spare_) {
    context->slots.clear();
    context->parked.release_slots();
    context->spill.reset();
  }
}

// A call under way; gives everything back when it ends, however it ends.
class ProgramVariant::Running {
 public:
  Running(ProgramVariant& variant, const ProgramCall& call)
      : v_(variant), t_(variant.tables_), call_(call), c_(variant.obtain_context()) {
    c_->begin();
  }
  ~Running() {
    for (SpillSlot& slot : c_->slots) slot.give_up();  // Before their memory goes.
    c_->parked.release();
    for (StorageRef& storage : c_->taken) storage = StorageRef();
    for (StorageRef& storage : c_->read) storage = StorageRef();
    if (c_->is_elsewhere) c_->there.release();
    for (auto& lock : c_->locks)
      if (lock.owns_lock()) lock.unlock();
    while (begun_ > 0) t_.effects[--begun_].effect->end();
    v_.give_back(std::move(c_));
  }

  void obtain() {
    for (; begun_ < t_.effects.size(); ++begun_) t_.effects[begun_].effect->begin();
    {
      std::optional<BudgetScope> charged;
      if (call_.own) charged.emplace(*call_.own);
      obtain_variables();
    }
    for (std::uint32_t i = 0; i < t_.feed_base.size(); ++i)
      if (t_.feed_base[i] != ProgramTables::kNoBase) {
        const TensorRecord& record = *call_.feeds[i]->record();
        Storage* const storage = record.storage.load(std::memory_order_acquire);
        c_->set_base(t_.feed_base[i], storage->device(), static_cast<std::byte*>(storage->resident()) + record.offset);
      }
    if (!t_.parked.empty()) obtain_parked();
    const Category category = Category::kWorkspace;
    for (std::uint32_t i = 0; i < t_.extents.size(); ++i) {
      const auto bytes = static_cast<std::int64_t>(t_.extents[i].bytes);
      if (bytes > 0)
        take(i, *t_.extents[i].device, t_.extents[i].bytes,
             block_label({.op = "plan", .category = category}, Shape({bytes}), u8));
    }
    for (std::uint32_t i = 0; i < t_.storages.size(); ++i) {
      const ProgramTables::ResultStorage& result = t_.storages[i];
      take(t_.first_storage + i, *result.device, result.bytes,
           block_label({.op = result.op}, result.spec.shape, result.spec.dtype));
    }
    if (c_->is_elsewhere) [[unlikely]]
      c_->there.obtain(*c_, call_.read != nullptr);
    if (!t_.slot_bytes.empty()) reserve_slots();
    draw();
  }

  void obtain_inside(std::span<const ConstTensorView> feeds, std::span<const TensorView> results, std::byte* extent) {
    obtain_variables();
    if (c_->is_elsewhere) [[unlikely]]
      stage_constants();
    for (std::uint32_t i = 0; i < t_.feed_base.size(); ++i)
      if (t_.feed_base[i] != ProgramTables::kNoBase)
        c_->set_here(t_.feed_base[i], const_cast<std::byte*>(feeds[i].bytes()));
    c_->set_here(0, extent);
    for (std::size_t i = 0; i < t_.fetches.size(); ++i)
      c_->set_here(t_.first_storage + t_.fetches[i].number, results[i].bytes());
    draw();
  }

  void execute() {
    OpObserver* const observer = ThreadContext::current().observer;
    std::optional<TracePlanRun> traced;
    if (trace_is_recording()) [[unlikely]]
      begin_trace(traced);
    TracePlanRun* const timed = traced && traced->times_steps() ? &*traced : nullptr;
    const bool watched = observer || timed;
    const ProgramTables::Transfer* transfer = t_.transfers.data();
    const ProgramTables::FetchEnd* ended = t_.fetch_ends.data();
    for (std::size_t i = 0; i < t_.steps.size(); ++i) {
      for (; transfer->position == i; ++transfer) begin_or_wait(*transfer);
      const ProgramTables::Step& step = t_.steps[i];
      if (call_.borrowed) [[unlikely]]
        borrowed_.bring(*call_.borrowed, *c_, step);
      const OpRun run = c_->run_of(step);
      if (step.checks) [[unlikely]]
        check(i, run);
      if (watched) [[unlikely]]
        run_watched(i, run, observer, timed);
      else if (c_->is_elsewhere) [[unlikely]]
        c_->there.run(*c_, i);
      else
        c_->ops[i]->run(run);
      if (step.checks && pending_error()) [[unlikely]]
        std::rethrow_exception(std::exchange(pending_error(), nullptr));
      if (call_.after_step) [[unlikely]]
        ended = tell_ended(i, ended);
    }
    for (; transfer->kind != ProgramTables::Transfer::Kind::kEnd; ++transfer) begin_or_wait(*transfer);
    if (c_->is_elsewhere) [[unlikely]]
      c_->there.settle(*c_);
    c_->parked.commit(t_);
    if (traced) traced->finish();
  }

  // Handles to the results, before they are there: so that making them cannot fail a step that has happened.
  void hand_out() {
    if (t_.keeps_inside) return;
    for (std::size_t i = 0; i < t_.fetches.size(); ++i) call_.results[i] = result(i);
  }
  void take_back() noexcept {
    for (Tensor& result : call_.results) result = Tensor();
  }

  void finish() {
    if (call_.read) (*call_.read)(fetched());
    for (const ProgramTables::Effect& effect : t_.effects) effect.effect->commit(effect.times);
    if (call_.spilled_bytes) *call_.spilled_bytes += stored_bytes();
    if (call_.given_draws) return;
    for (const ProgramTables::Advance& advance : t_.advances) advance.stream->taken += advance.count;
  }

 private:
  std::size_t stored_bytes() const {
    std::size_t total = 0;
    for (const std::size_t bytes : t_.slot_bytes) total += bytes;
    for (const ProgramTables::Parked& parked : t_.parked)
      if (t_.variables[parked.variable].writes) total += parked.bytes;
    return total;
  }

  // What others hold of those that are changed is copied first, which is charged as what variables take.
  void obtain_parked() {
    std::optional<BudgetScope> charged;
    if (call_.own) charged.emplace(*call_.own);
    c_->parked.obtain(t_, call_.variables, *call_.spill);
  }

  bool is_borrowed(std::uint32_t variable) const { return call_.borrowed && call_.borrowed->is_borrowed[variable]; }

  // Gives the first one that is still to be told.
  const ProgramTables::FetchEnd* tell_ended(std::size_t step, const ProgramTables::FetchEnd* from) {
    const ProgramTables::FetchEnd* const all = t_.fetch_ends.data() + t_.fetch_ends.size();
    const ProgramTables::FetchEnd* to = from;
    while (to != all && to->step <= step) ++to;
    (*call_.after_step)({from, to});
    return to;
  }

  void take(std::uint32_t base, Device& device, std::size_t bytes, const BlockLabel& label) {
    c_->taken[base] = Storage::take(device, bytes, label);
    const std::size_t alignment = base < t_.extents.size() ? t_.extents[base].alignment : 1;
    const auto address = reinterpret_cast<std::uintptr_t>(c_->taken[base]->resident());
    c_->set_base(base, device, reinterpret_cast<void*>(round_up(address, alignment)));
  }

  void check(std::size_t i, const OpRun& run) {
    if (c_->is_elsewhere) [[unlikely]]
      c_->there.check(*c_, i);
    else
      t_.steps[i].op->check(run.in);
  }

  // What a reader inside is given.
  std::span<const ConstTensorView> fetched() {
    if (c_->is_elsewhere) return c_->there.fetched(*c_);
    return {c_->in.data() + t_.first_fetched, t_.fetches.size()};
  }

  // Of a run inside an op, which is on the host: constants may not be.
  void stage_constants() {
    here_.resize(t_.constants.size());
    for (std::uint32_t i = 0; i < t_.constants.size(); ++i) {
      const std::byte* const bytes = here_[i].hold(*t_.constants[i], 0, t_.constants[i]->bytes());
      c_->set_here(t_.first_constant + i, const_cast<std::byte*>(bytes));
    }
    c_->is_elsewhere = false;
  }

  // Those of the run before, when it was with the same file.
  void reserve_slots() {
    if (c_->spill && *c_->spill == *call_.spill && !c_->slots.empty()) return;
    c_->slots.clear();
    std::vector<SpillSlot> slots;
    for (const std::size_t bytes : t_.slot_bytes) slots.push_back(call_.spill->reserve(bytes));
    c_->slots = std::move(slots);
    c_->spill = *call_.spill;
  }

  void begin_or_wait(const ProgramTables::Transfer& transfer) {
    const std::span<std::byte> bytes(static_cast<std::byte*>(c_->bases[transfer.extent]) + transfer.offset,
                                     transfer.bytes);
    if (transfer.is_parked) return begin_or_wait_parked(transfer, bytes);
    SpillSlot& slot = c_->slots[transfer.slot];
    switch (transfer.kind) {
      case ProgramTables::Transfer::Kind::kStore:
        return slot.store(bytes);
      case ProgramTables::Transfer::Kind::kLoad:
        return slot.load(bytes);
      case ProgramTables::Transfer::Kind::kWait:
      case ProgramTables::Transfer::Kind::kWaitForLoad:
      case ProgramTables::Transfer::Kind::kEnd:
        return slot.wait();
    }
  }

  void begin_or_wait_parked(const ProgramTables::Transfer& transfer, std::span<std::byte> bytes) {
    switch (transfer.kind) {
      case ProgramTables::Transfer::Kind::kStore:
        return c_->parked.store(transfer.slot, bytes);
      case ProgramTables::Transfer::Kind::kLoad:
        return c_->parked.load(transfer.slot, bytes);
      case ProgramTables::Transfer::Kind::kWaitForLoad:
        return c_->parked.wait_for_load(transfer.slot);
      case ProgramTables::Transfer::Kind::kWait:
      case ProgramTables::Transfer::Kind::kEnd:
        return c_->parked.wait_for_store(transfer.slot);
    }
  }

  // Those that are written are locked, in the order of their ids, and have their bytes for themselves. Of parked ones
  // only what is locked here; obtain_parked() does the rest.
  void obtain_variables() {
    for (std::uint32_t i = 0; i < t_.constants.size(); ++i)
      c_->set_base(t_.first_constant + i, t_.constants[i]->device(), t_.constants[i]->resident());
    if (!t_.parked.empty()) c_->parked.share(t_, call_.variables, *call_.spill);
    // What is read is locked for a moment only, and before what is written, which is locked in one order: so runs that
    // each write what the other reads do not wait for each other for ever.
    for (std::uint32_t i = 0; i < t_.variables.size(); ++i) {
      if (t_.variables[i].writes || t_.variables[i].is_parked || is_borrowed(i)) continue;
      c_->read[i] = call_.variables[i].share_bytes();
      c_->set_base(t_.first_variable + i, c_->read[i]->device(), c_->read[i]->resident());
    }
    for (std::size_t i = 0; i < t_.write_order.size(); ++i) c_->locks[i] = call_.variables[t_.write_order[i]].lock();
    for (std::uint32_t i = 0; i < t_.variables.size(); ++i) {
      if (!t_.variables[i].writes || t_.variables[i].is_parked) continue;
      c_->written[i] = &call_.variables[i].own_bytes();
      c_->set_base(t_.first_variable + i, c_->written[i]->device(), c_->written[i]->resident());
    }
  }

  const RandomDraw* given_draw(std::uint64_t ticket) const {
    if (call_.given_draws)
      for (const RandomDraw& candidate : *call_.given_draws)
        if (candidate.ticket == ticket) return &candidate;
    return nullptr;
  }

  void draw() {
    if (t_.tickets.empty() && t_.seeded_steps.empty()) return;
    Draws& draws = c_->draws;
    draws.clear();
    for (const ProgramTables::Ticket& ticket : t_.tickets) {
      const RandomDraw* const given = given_draw(ticket.number);
      draws.push_back(given ? *given : draw_random(std::nullopt, ticket.elements));
      draws.back().ticket = ticket.number;
    }
    for (std::size_t i = 0; i < t_.random_steps.size(); ++i)
      *c_->drawing_ops[i]->draw() = draws[t_.random_steps[i].ticket];
    for (std::size_t i = 0; i < t_.seeded_steps.size(); ++i) {
      const GraphState::DeferredSeed& seed = (*t_.graph->seeds())[t_.seeded_steps[i].seed];
      const RandomDraw* const given = given_draw(seed.stands_for);
      RandomDraw& to = *c_->drawing_ops[t_.random_steps.size() + i]->draw();
      to.key = given ? given->key : seed_at(seed.base, seed.stream->taken + seed.number);
      if (call_.drawn) call_.drawn->push_back({.key = to.key, .offset = 0, .ticket = seed.stands_for});
    }
    if (call_.drawn) call_.drawn->insert(call_.drawn->end(), draws.begin(), draws.end());
  }

  void run_watched(std::size_t i, const OpRun& run, OpObserver* observer, TracePlanRun* timed) {
    const std::int64_t start = observer ? monotonic_ns() : 0;
    if (c_->is_elsewhere)
      c_->there.run(*c_, i);
    else
      c_->ops[i]->run(run);
    if (observer) observer->ran(*c_->ops[i], {}, {}, monotonic_ns() - start);
    if (timed) timed->step_done();
  }

  // A run inside an op has no extents of its own: the op's scratch is what a trace shows.
  void begin_trace(std::optional<TracePlanRun>& traced) {
    bool any = false;
    for (std::size_t i = 0; i < t_.extents.size(); ++i) {
      const Chunk* const chunk = c_->taken[i] ? c_->taken[i]->chunk() : nullptr;
      c_->extent_blocks[i] = chunk ? chunk->label.id : 0;
      any |= chunk != nullptr;
    }
    if (any && !t_.steps.empty()) traced.emplace(c_->traced, t_.placed, c_->extent_blocks);
  }

  Tensor result(std::size_t fetch) {
    const ProgramTables::Result& result = t_.fetches[fetch];
    const TensorSpec& spec = t_.fetch_spec(fetch);
    const auto on = [&](StorageRef storage, std::size_t offset, const char* op, std::uint8_t flags) {
      return make_tensor_on(std::move(storage), offset, spec.shape, spec.dtype, {.op = op}, flags);
    };
    switch (result.kind) {
      case ProgramTables::Result::Kind::kStorage: {
        const StorageRef& storage = c_->taken[t_.first_storage + result.number];
        const bool shared = storage->references() > 1;
        return on(storage, result.offset, t_.storages[result.number].op, shared ? TensorRecord::kView : 0);
      }
      case ProgramTables::Result::Kind::kFeed: {
        const TensorRecord& record = *call_.feeds[result.number]->record();
        return on(StorageRef::share(record.storage.load(std::memory_order_acquire)), record.offset + result.offset,
                  record.op(), TensorRecord::kView);
      }
      case ProgramTables::Result::Kind::kConstant:
        return on(StorageRef::share(t_.constants[result.number]), result.offset, "constant", TensorRecord::kView);
      case ProgramTables::Result::Kind::kVariable: {
        StorageRef bytes =
            c_->read[result.number] ? c_->read[result.number] : StorageRef::share(c_->written[result.number]);
        return on(std::move(bytes), result.offset, "variable", TensorRecord::kView);
      }
      case ProgramTables::Result::Kind::kNothing:
        return {};
    }
    return {};
  }

  ProgramVariant& v_;
  const ProgramTables& t_;
  const ProgramCall call_;
  std::unique_ptr<Context> c_;
  std::size_t begun_ = 0;  // Of the effects.
  BorrowedNow borrowed_;
  std::vector<HostBytes> here_;  // Constants of a run inside an op.
};

void ProgramVariant::run(const ProgramCall& call) {
  Running running(*this, call);
  running.obtain();
  try {
    running.hand_out();
    running.execute();
  } catch (...) {
    running.take_back();
    throw;
  }
  running.finish();
}

void ProgramVariant::run_inside(std::span<const ConstTensorView> feeds, std::span<const TensorView> results,
                                std::byte* extent) {
  Running running(*this, {});
  running.obtain_inside(feeds, results, extent);
  running.execute();
  running.finish();
}

}  // namespace plimsoll::internal
