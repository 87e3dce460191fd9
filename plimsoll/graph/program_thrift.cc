// Ops that can do the same in less memory: see ops/thrifty_op.h, and program_slice_losses.cc.
#include <algorithm>
#include <new>

#include "plimsoll/device/device.h"
#include "plimsoll/graph/program_passes.h"
#include "plimsoll/ops/thrifty_op.h"

namespace plimsoll::internal {
namespace {

using Place = StepList::Place;

const ThriftyOp* thrifty_op(const StepList::Step& step) {
  // Other devices' kernels have no such variants; a fallback would cost more than it saves.
  const bool by_host = step.device && step.device->backend().is_reachable();
  return by_host ? dynamic_cast<const ThriftyOp*>(step.op) : nullptr;
}

class Thrift {
 public:
  Thrift(StepList& list, int level) : list_(list), level_(level), readers_(list.roots.size()) {
    for (std::size_t i = 0; i < list.steps.size(); ++i)
      for (std::size_t k = 0; k < list.steps[i].in.size(); ++k)
        readers_[list.values[list.steps[i].in[k]].root].push_back({i, k});
    for (const std::uint32_t fetch : list.fetches)
      if (fetch != StepList::kNone) readers_[list.values[fetch].root].push_back({kNobody, 0});
  }

  void run() {
    for (std::size_t i = 0; i < list_.steps.size(); ++i) {
      const ThriftyOp* const op = thrifty_op(list_.steps[i]);
      if (!op || op->thrifty_input() != ThriftyOp::kNone || (level_ == 0 && op->costs_time())) continue;
      if (op->thrifty_output() != ThriftyOp::kNone && !change_output(i, op->thrifty_output())) continue;
      replace(i);
    }
  }

 private:
  static constexpr std::size_t kNobody = SIZE_MAX;
  struct Reader {
    std::size_t step, input;
  };

  void replace(std::size_t i) {
    StepList::Step& step = list_.steps[i];
    const ThriftyOp& op = *thrifty_op(step);
    list_.ops.push_back(op.with_thrift(op.costs_time() ? level_ : ThriftyOp::kMostThrift));
    step.op = list_.ops.back().get();
    step.scratch_bytes = list_.scratch_of(*step.op, step.in, step.out);
  }

  // With its readers, if all of them change with it.
  bool change_output(std::size_t i, std::size_t output) {
    const StepList::Step& step = list_.steps[i];
    const std::uint32_t value = step.out[output], root = list_.values[value].root;
    if (list_.roots[root].place != Place::kPlanned) return false;
    for (const Reader& reader : readers_[root]) {
      const ThriftyOp* const op = reader.step == kNobody ? nullptr : thrifty_op(list_.steps[reader.step]);
      if (!op || op->thrifty_input() != reader.input || list_.steps[reader.step].in[reader.input] != value)
        return false;
    }
    const std::unique_ptr<Op> thrifty = thrifty_op(step)->with_thrift(level_);
    list_.specs.push_back(std::make_shared<TensorSpec>(list_.outputs_of(*thrifty, step.in)[output]));
    list_.values[value].spec = list_.specs.back().get();
    list_.roots[root].spec = *list_.specs.back();
    list_.roots[root].bytes = list_.specs.back()->bytes();
    for (const Reader& reader : readers_[root]) replace(reader.step);
    return true;
  }

  StepList& list_;
  const int level_;
  std::vector<std::vector<Reader>> readers_;  // By root.
};

}  // namespace

void use_thrifty_ops(StepList& list, int level) {
  if (level > 0) slice_losses(list);
  Thrift(list, level).run();
}

int levels_of_thrift(const StepList& list) {
  const bool costs = std::any_of(list.steps.begin(), list.steps.end(), [](const StepList::Step& step) {
    const ThriftyOp* const op = thrifty_op(step);
    return op && op->costs_time();
  });
  if (costs) return ThriftyOp::kMostThrift;
  return has_sliceable_loss(list) ? 1 : 0;
}

}  // namespace plimsoll::internal
