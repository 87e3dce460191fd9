#include "plimsoll/graph/program.h"

#include "plimsoll/graph/program_family.h"
#include "plimsoll/graph/program_passes.h"
#include "plimsoll/graph/program_variant.h"
#include "plimsoll/memory/thread_memory.h"

namespace plimsoll {
namespace {

ProgramTables natural_tables(const Rewritten& rewritten, const Passes& passes, bool inside) {
  StepList list = list_fused_steps(rewritten, passes, inside);
  find_lifetimes(list);
  place_results(list);
  if (passes.in_place) share_bytes(list);
  const BufferPlaces places = place_buffers(list);
  return emit(std::move(list), places);
}

}  // namespace

std::exception_ptr& pending_error() noexcept {
  thread_local std::exception_ptr error;
  return error;
}

Program::Program(Rewritten rewritten, const Passes& passes, bool inside)
    : rewritten_(std::move(rewritten)),
      passes_(passes),
      inside_(inside),
      natural_(std::make_unique<ProgramVariant>(natural_tables(rewritten_, passes_, inside_))) {
  most_bytes_ = most_bytes();
}
Program::~Program() = default;

void Program::run(const ProgramCall& call) {
  if (call.own || ThreadMemory::current().budget) [[unlikely]]
    run_charged(call);
  else
    run_point(0, call);
}

void Program::run_point(std::size_t point, const ProgramCall& call) {
  if (call.recomputed_cost_fraction)
    *call.recomputed_cost_fraction = point == 0 ? 0 : 1 - 1 / family().points()[point].slowdown;
  (point == 0 ? *natural_ : family().variant(point)).run(call);
}

void Program::run_inside(std::span<const ConstTensorView> feeds, std::span<const TensorView> results,
                         std::byte* extent) {
  natural_->run_inside(feeds, results, extent);
}

const ProgramTables& Program::tables() const noexcept { return natural_->tables(); }
std::size_t Program::block_bytes() const noexcept { return tables().block_bytes(); }

ProgramFamily& Program::family() const {
  if (ProgramFamily* const made = family_.load(std::memory_order_acquire)) return *made;
  const std::lock_guard lock(mutex_);
  if (!owned_family_) {
    owned_family_ = std::make_unique<ProgramFamily>(rewritten_, passes_, inside_, tables());
    family_.store(owned_family_.get(), std::memory_order_release);
  }
  return *owned_family_;
}

std::vector<BudgetPoint> Program::front() const { return family().points(); }

std::size_t Program::smallest_block_bytes(double max_slowdown) const {
  std::size_t smallest = block_bytes();
  for (const BudgetPoint& point : family().points())
    if (point.slowdown <= max_slowdown) smallest = std::min(smallest, point.bytes);
  return smallest;
}

std::size_t Program::floor_bytes() const { return family().floor_bytes(); }
std::string Program::floor_step() const { return family().floor_step(); }

const MemoryPlan& Program::memory_plan_of(std::size_t point) const {
  return point == 0 ? memory_plan() : family().variant(point).tables().plan;
}

MemoryPlan Program::memory_plan_with_front() const {
  MemoryPlan plan = memory_plan();
  plan.front = front();
  plan.smallest_bytes = plan.front.back().bytes;
  plan.floor_bytes = floor_bytes();
  plan.floor_step = floor_step();
  return plan;
}

std::size_t Program::bytes() const noexcept {
  const ProgramFamily* const family = family_.load(std::memory_order_acquire);
  std::size_t total = sizeof(Program) + tables().bytes() + graph().nodes().size() * sizeof(Node);
  for (const Storage* constant : tables().constants) total += constant->bytes();
  return total + (family ? family->bytes() : 0);
}

}  // namespace plimsoll
