#include "plimsoll/ops/internal/recurrent_ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/op_cost.h"

namespace plimsoll::internal {
namespace {

const char* cell_name(RecurrentCell cell) noexcept {
  constexpr const char* kNames[] = {"simple_rnn", "lstm", "gru"};
  return kNames[static_cast<std::size_t>(cell)];
}

std::int64_t gates_of(RecurrentCell cell) noexcept {
  constexpr std::int64_t kGates[] = {1, 4, 3};
  return kGates[static_cast<std::size_t>(cell)];
}

RecurrentSizes sizes_of(const Shape& x, const Shape& recurrent_kernel) noexcept {
  return {x[0], x[1], x[2], recurrent_kernel[0]};
}

bool fits(std::int64_t size, std::int64_t wanted) noexcept {
  return size == wanted || size == kUnknownSize || wanted == kUnknownSize;
}

std::size_t aligned(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

std::span<std::byte> bytes_of(const TensorView& x) noexcept { return {x.bytes(), x.nbytes()}; }

}  // namespace

const char* RecurrentOp::name() const noexcept { return cell_name(options_.cell); }

std::string RecurrentOp::input_name(std::size_t input) const {
  constexpr const char* kFirst[] = {"x", "kernel", "recurrent_kernel"};
  if (input < 3) return kFirst[input];
  if (given_.bias && input == bias_input()) return "bias";
  if (given_.initial_h && input == initial_h_input()) return "initial_h";
  if (given_.initial_c && input == initial_c_input()) return "initial_c";
  return "mask";
}

void RecurrentOp::infer(const Specs& in, SpecList& out) const {
  const Shape &x = in.shape(0), &kernel = in.shape(1), &recurrent = in.shape(2);
  const DType dtype = in.dtype(0);
  if (dtype != f32 && dtype != f64) refuse_dtype(*this, dtype);
  for (std::size_t i = 1; i < in.size(); ++i) {
    const DType wanted = given_.mask && i == mask_input() ? boolean : dtype;
    if (in.dtype(i) != wanted)
      throw InvalidArgument(fmt::format("{}: x is {}, {} {}; it must be {}", name(), dtype_name(dtype), input_name(i),
                                        dtype_name(in.dtype(i)), dtype_name(wanted)));
  }
  const std::int64_t gates = gates_of(options_.cell);
  if (x.rank() != 3 || kernel.rank() != 2 || !fits(x[2], kernel[0]))
    throw InvalidArgument(
        fmt::format("{}: x {} and kernel {} do not match; give x [batch, time, inputs] and kernel [inputs, {} units]",
                    name(), x.to_string(), kernel.to_string(), gates));
  if (recurrent.rank() != 2 || recurrent[0] == 0 || !fits(recurrent[1], gates * recurrent[0]) ||
      !fits(kernel[1], recurrent[1]))
    throw InvalidArgument(
        fmt::format("{}: kernel {} and recurrent_kernel {} do not match; give the second [units, {} units]", name(),
                    kernel.to_string(), recurrent.to_string(), gates));
  if (x[1] == 0) throw InvalidArgument(fmt::format("{}: x {} has no steps; give at least one", name(), x.to_string()));
  const RecurrentSizes sizes = sizes_of(x, recurrent);
  check_optional(in, sizes);
  const Shape state = {sizes.batch, sizes.units};
  out.add(return_sequences_ ? Shape({sizes.batch, sizes.time, sizes.units}) : state, dtype);
  out.add(state, dtype);
  if (is_lstm()) out.add(state, dtype);
  if (!options_.keep_for_gradient) return;
  const bool is_known = x.is_known() && recurrent.is_known();
  const auto bytes = static_cast<std::int64_t>(is_known ? recurrent_workspace_bytes(options_, sizes, dtype) : 0);
  out.add({is_known ? bytes : kUnknownSize}, u8);
}

void RecurrentOp::check_optional(const Specs& in, const RecurrentSizes& sizes) const {
  const auto require = [&](std::size_t input, std::initializer_list<std::int64_t> wanted) {
    const Shape& shape = in.shape(input);
    bool agrees = shape.rank() == wanted.size();
    for (std::size_t axis = 0; agrees && axis < wanted.size(); ++axis) agrees = fits(shape[axis], wanted.begin()[axis]);
    if (!agrees)
      throw InvalidArgument(
          fmt::format("{}: x is {}, recurrent_kernel {}, {} {}; it must be {}", name(), in.shape(0).to_string(),
                      in.shape(2).to_string(), input_name(input), shape.to_string(),
                      Shape(std::span<const std::int64_t>(wanted.begin(), wanted.size())).to_string()));
  };
  const bool two_biases = options_.cell == RecurrentCell::gru && options_.reset_after;
  const std::int64_t width = sizes.units == kUnknownSize ? kUnknownSize : gates_of(options_.cell) * sizes.units;
  if (given_.bias && two_biases) require(bias_input(), {2, width});
  if (given_.bias && !two_biases) require(bias_input(), {width});
  if (given_.initial_h) require(initial_h_input(), {sizes.batch, sizes.units});
  if (given_.initial_c) require(initial_c_input(), {sizes.batch, sizes.units});
  if (given_.mask) require(mask_input(), {sizes.batch, sizes.time});
}

// Each step of each sequence uses both kernels once.
static std::uint64_t recurrent_cost(const Specs& in) {
  const auto features = static_cast<std::uint64_t>(in.shape(0).back());
  return features == 0 ? 0
                       : multiplication_cost(in.shape(0).size() / features * (in.shape(1).size() + in.shape(2).size()));
}

std::uint64_t RecurrentOp::cost(const Specs& in, const SpecList& out) const {
  return Op::cost(in, out) + recurrent_cost(in);
}

// What is made again stays in the caches, a few steps at a time: with batches of 128 that took half of what the first
// time takes, with 32 as much.
std::uint64_t RecurrentGradient::cost(const Specs& in, const SpecList& out) const {
  const std::uint64_t products = recurrent_cost(in);
  const auto remade = static_cast<std::uint64_t>(static_cast<unsigned char>(options_.remade));
  const std::uint64_t batch = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(in.shape(0)[0]));
  const std::uint64_t again = products / (3 * batch) * (batch + 2 * std::min<std::uint64_t>(batch, 32));
  return Op::cost(in, out) + 2 * products + again / kRecurrentParts * remade;
}

static std::int8_t remade_at(int level) {
  return static_cast<std::int8_t>(kRecurrentParts * level / ThriftyOp::kMostThrift);
}
std::unique_ptr<Op> RecurrentOp::with_thrift(int level) const {
  auto thrifty = std::make_unique<RecurrentOp>(*this);
  thrifty->options_.remade = remade_at(level);
  return thrifty;
}
std::unique_ptr<Op> RecurrentGradient::with_thrift(int level) const {
  auto thrifty = std::make_unique<RecurrentGradient>(*this);
  thrifty->options_.remade = remade_at(level);
  return thrifty;
}

std::size_t RecurrentOp::workspace_bytes(const Specs& in, const SpecList&) const {
  const RecurrentSizes sizes = sizes_of(in.shape(0), in.shape(2));
  const std::size_t scratch = recurrent_scratch_bytes(options_, sizes, in.dtype(0));
  if (options_.keep_for_gradient) return scratch;
  return aligned(recurrent_workspace_bytes(options_, sizes, in.dtype(0))) + scratch;
}

void RecurrentOp::run(const OpRun& run) const noexcept {
  RecurrentInputs in = {.x = run.in[0], .kernel = run.in[1], .recurrent_kernel = run.in[2]};
  if (given_.bias) in.bias = run.in[bias_input()];
  if (given_.initial_h) in.initial_h = run.in[initial_h_input()];
  if (given_.initial_c) in.initial_c = run.in[initial_c_input()];
  if (given_.mask) in.mask = run.in[mask_input()];
  RecurrentResults<TensorView> out = {.final_h = run.out[1]};
  (return_sequences_ ? out.sequence : out.last) = run.out[0];
  if (is_lstm()) out.final_c = run.out[2];
  if (run.in[0].shape()[0] == 0) return;
  if (options_.keep_for_gradient)
    return recurrent(options_, in, out, bytes_of(run.out[workspace_output()]), run.scratch);
  const std::size_t bytes =
      aligned(recurrent_workspace_bytes(options_, sizes_of(run.in[0].shape(), run.in[2].shape()), run.in[0].dtype()));
  recurrent(options_, in, out, run.scratch.first(bytes), run.scratch.subspan(bytes));
}

SavedSlots RecurrentOp::saved(SlotMask) const {
  return {.inputs = slot(0) | slot(1) | slot(2) | (given_.mask ? slot(mask_input()) : 0) |
                    (reads_initial_h() ? slot(initial_h_input()) : 0),
          .outputs = slot(workspace_output())};
}

void RecurrentOp::gradient(GradientContext& c) const {
  const RecurrentGradientParts parts = {.x = c.wants(0),
                                        .kernel = c.wants(1),
                                        .recurrent_kernel = c.wants(2),
                                        .bias = given_.bias && c.wants(bias_input()),
                                        .initial_h = given_.initial_h && c.wants(initial_h_input()),
                                        .initial_c = given_.initial_c && c.wants(initial_c_input()),
                                        .reads_initial_h = reads_initial_h(),
                                        .mask = given_.mask,
                                        .d_output = c.has_grad(0),
                                        .d_h = c.has_grad(1),
                                        .d_c = is_lstm() && c.has_grad(2),
                                        .return_sequences = return_sequences_};
  std::vector<const Tensor*> inputs = {&c.input(0), &c.input(1), &c.input(2), &c.output(workspace_output())};
  if (parts.reads_initial_h) inputs.push_back(&c.input(initial_h_input()));
  if (parts.mask) inputs.push_back(&c.input(mask_input()));
  if (parts.d_output) inputs.push_back(&c.grad(0));
  if (parts.d_h) inputs.push_back(&c.grad(1));
  if (parts.d_c) inputs.push_back(&c.grad(2));
  std::vector<Tensor> gradients = execute_all(RecurrentGradient(options_, parts), inputs);
  std::size_t next = 0;
  const auto give = [&](bool asked, std::size_t input) {
    if (asked) c.give(input, std::move(gradients[next++]));
  };
  give(parts.x, 0);
  give(parts.kernel, 1);
  give(parts.recurrent_kernel, 2);
  give(parts.bias, bias_input());
  give(parts.initial_h, initial_h_input());
  give(parts.initial_c, initial_c_input());
}

void RecurrentGradient::infer(const Specs& in, SpecList& out) const {
  const Shape &x = in.shape(0), &kernel = in.shape(1), &recurrent = in.shape(2);
  const DType dtype = in.dtype(0);
  const Shape state = {x[0], recurrent[0]};
  const bool two_biases = options_.cell == RecurrentCell::gru && options_.reset_after;
  if (parts_.x) out.add(x, dtype);
  if (parts_.kernel) out.add(kernel, dtype);
  if (parts_.recurrent_kernel) out.add(recurrent, dtype);
  if (parts_.bias) out.add(two_biases ? Shape({2, kernel[1]}) : Shape({kernel[1]}), dtype);
  if (parts_.initial_h) out.add(state, dtype);
  if (parts_.initial_c) out.add(state, dtype);
}

std::size_t RecurrentGradient::workspace_bytes(const Specs& in, const SpecList&) const {
  return recurrent_gradient_scratch_bytes(options_, sizes_of(in.shape(0), in.shape(2)), in.dtype(0));
}

void RecurrentGradient::run(const OpRun& run) const noexcept {
  RecurrentInputs in = {.x = run.in[0], .kernel = run.in[1], .recurrent_kernel = run.in[2]};
  const std::span<const std::byte> workspace(run.in[kWorkspaceInput].bytes(), run.in[kWorkspaceInput].nbytes());
  std::size_t next = 4;
  if (parts_.reads_initial_h) in.initial_h = run.in[next++];
  if (parts_.mask) in.mask = run.in[next++];
  RecurrentResults<ConstTensorView> upstream;
  if (parts_.d_output) (parts_.return_sequences ? upstream.sequence : upstream.last) = run.in[next++];
  if (parts_.d_h) upstream.final_h = run.in[next++];
  if (parts_.d_c) upstream.final_c = run.in[next++];
  RecurrentGradients out;
  next = 0;
  const auto take = [&](bool asked, TensorView& to) {
    if (asked) to = run.out[next++];
  };
  take(parts_.x, out.x);
  take(parts_.kernel, out.kernel);
  take(parts_.recurrent_kernel, out.recurrent_kernel);
  take(parts_.bias, out.bias);
  take(parts_.initial_h, out.initial_h);
  take(parts_.initial_c, out.initial_c);
  recurrent_gradient(options_, in, upstream, out, workspace, run.scratch);
}

void RecurrentGradient::gradient(GradientContext&) const {
  throw Unsupported(fmt::format("{}: has no second derivative; compute it step by step out of other operations",
                                cell_name(options_.cell)));
}

}  // namespace plimsoll::internal
