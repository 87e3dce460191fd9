#include "plimsoll/tensor/op.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/tensor/index_check.h"

namespace plimsoll {

Op::~Op() = default;

std::size_t Op::workspace_bytes(const Specs&, const SpecList&) const { return 0; }

std::uint64_t Op::cost(const Specs& in, const SpecList& out) const {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < in.size(); ++i) bytes += in.shape(i).size() * size_of(in.dtype(i));
  for (std::size_t i = 0; i < out.size(); ++i) bytes += out[i].bytes();
  return bytes;
}

bool Op::launch(KernelQueue&, const OpRun&) const noexcept { return false; }
bool Op::index_rule(std::span<const ConstTensorView>, internal::IndexRule&) const { return false; }

void Op::check(std::span<const ConstTensorView> in) const {
  internal::IndexRule rule;
  if (index_rule(in, rule)) internal::check_indices(in[rule.input], rule);
}

RandomDraw* Op::draw() noexcept { return nullptr; }
std::size_t Op::view_offset(const Specs&) const { return 0; }

SavedSlots Op::saved(SlotMask) const { return {}; }

void Op::gradient(GradientContext&) const { throw Unsupported(fmt::format("{}: has no gradient", name())); }

Tensor Op::remake(GradientContext&) const { throw Unsupported(fmt::format("{}: cannot be recomputed", name())); }

std::size_t Op::make_lean() noexcept { return 0; }

OpFacts Op::facts() const noexcept { return {}; }

std::string Op::input_name(std::size_t input) const {
  constexpr const char* kNames[] = {"x", "y", "z"};
  return input < 3 ? kNames[input] : fmt::format("input {}", input);
}

}  // namespace plimsoll
