// cond and while_loop: branches and loops on values that a graph computes.
//
//   Tensor y = cond(x.sum() > 0.f, [&] { return x; }, [&] { return -x; });
//   TensorTree end = while_loop([](const TensorTree& s) { return s[0].tensor() < 100; },
//                               [](const TensorTree& s) { return TensorTree{s[0].tensor() * 2}; }, TensorTree{x});
//
// When the condition has a value, they act as C++'s own `if` and `while`. In a function or a graph both branches, or
// the loop's parts, are traced once and become one operation with its plan inside. Both branches return values of one
// structure, with the same dtypes and shapes; a loop's state keeps its dtypes and shapes (InvalidArgument). State may
// be a tensor, a TensorTree, or anything that tidy can return. They have gradients; that of a loop recomputes states
// instead of keeping all of them. A branch may assign to variables; when the other one is taken they stay unchanged.
// The variables need a value beforehand. In a Graph the assignment happens when a result of the cond is requested. A
// loop may not assign (Unsupported): return the value instead.
#pragma once

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/function_ref.h"
#include "plimsoll/graph/replace_tensors.h"
#include "plimsoll/tensor/tensor.h"
#include "plimsoll/tensor/tensor_tree.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll {

namespace control_detail {

template <class T>
std::vector<Tensor> tensors_in(const T& value) {
  std::vector<Tensor> tensors;
  visit_all_tensors(value, [&](const Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}

using Branch = FunctionRef<std::vector<Tensor>()>;
PLIMSOLL_API std::vector<Tensor> cond(const Tensor& predicate, Branch then, Branch otherwise);

using Condition = FunctionRef<Tensor(std::span<const Tensor> state)>;
using Step = FunctionRef<std::vector<Tensor>(std::span<const Tensor> state)>;
PLIMSOLL_API std::vector<Tensor> while_loop(Condition condition, Step step, const std::vector<Tensor>& state);

PLIMSOLL_API bool is_traced(std::span<const Tensor> tensors) noexcept;

}  // namespace control_detail

template <class Then, class Otherwise>
auto cond(const Tensor& predicate, Then&& then, Otherwise&& otherwise) {
  using Result = std::decay_t<std::invoke_result_t<Then>>;
  if (!is_symbolic(predicate)) return static_cast<bool>(predicate) ? Result(then()) : Result(otherwise());
  Result result;
  const std::vector<Tensor> values = control_detail::cond(
      predicate,
      [&] {
        result = then();
        return control_detail::tensors_in(result);
      },
      [&] {
        const Result other = otherwise();
        return control_detail::tensors_in(other);
      });
  replace_tensors(result, values);
  return result;
}

template <class Condition, class Step, class State>
State while_loop(Condition&& condition, Step&& step, State state) {
  const std::vector<Tensor> initial = control_detail::tensors_in(state);
  if (!control_detail::is_traced(initial)) {
    while (static_cast<bool>(Tensor(condition(std::as_const(state))))) state = step(std::as_const(state));
    return state;
  }
  const auto with = [&state](std::span<const Tensor> tensors) {
    State copy = state;
    replace_tensors(copy, tensors);
    return copy;
  };
  const std::vector<Tensor> end =
      control_detail::while_loop([&](std::span<const Tensor> tensors) { return Tensor(condition(with(tensors))); },
                                 [&](std::span<const Tensor> tensors) {
                                   const State next = step(with(tensors));
                                   return control_detail::tensors_in(next);
                                 },
                                 initial);
  return with(end);
}

}  // namespace plimsoll
