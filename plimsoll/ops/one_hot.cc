// one_hot: turns indices into rows of zeros with a single one.
#include <fmt/format.h>

#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/kernels/movement.h"
#include "plimsoll/ops/axis_list.h"
#include "plimsoll/ops/check_indices.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll {
namespace {

class OneHot final : public OpOf<OneHot> {
 public:
  OneHot(std::int64_t depth, DType dtype, const Number& on, const Number& off) noexcept
      : depth_(depth), on_(on), off_(off), dtype_(dtype) {}
  const char* name() const noexcept override { return "one_hot"; }
  std::string input_name(std::size_t) const override { return "indices"; }
  void infer(const Specs& in, SpecList& out) const override {
    require_index_dtype(in.dtype(0), name());
    if (depth_ < 0)
      throw InvalidArgument(
          fmt::format("one_hot: depth {} for indices {}; give 0 or more", depth_, in.shape(0).to_string()));
    SizeList sizes(in.shape(0));
    sizes.add(depth_);
    out.add(sizes.shape(), dtype_);
  }
  void run(const OpRun& run) const noexcept override {
    const TensorView& out = run.out[0];
    if (on_.to(dtype_) == Number(1).to(dtype_) && off_.to(dtype_) == 0) return internal::one_hot(run.in[0], out);
    const std::uint64_t on = on_.to(dtype_), off = off_.to(dtype_);
    if (out.size() == 0) return;
    copy(ConstTensorView(&off, 0, dtype_, Shape::scalar()), out);
    const std::size_t bytes = size_of(dtype_);
    for (std::size_t i = 0; i < run.in[0].size(); ++i) {
      const std::int64_t index =
          run.in[0].dtype() == i64 ? run.in[0].data<std::int64_t>()[i] : run.in[0].data<std::int32_t>()[i];
      if (index >= 0 && index < depth_)
        std::memcpy(out.bytes() + (i * static_cast<std::size_t>(depth_) + static_cast<std::size_t>(index)) * bytes, &on,
                    bytes);
    }
  }
  OpFacts facts() const noexcept override { return {.has_gradient = false}; }
  bool operator==(const OneHot&) const = default;

 private:
  std::int64_t depth_;
  Number on_, off_;
  DType dtype_;
};

}  // namespace

Tensor one_hot(const Tensor& indices, std::int64_t depth, DType dtype, const Number& on, const Number& off) {
  return execute(OneHot(depth, dtype, on, off), indices);
}

}  // namespace plimsoll
