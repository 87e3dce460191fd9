#include "plimsoll/ops/sparse_math.h"

#include <algorithm>

#include "plimsoll/kernels/sparse_rows.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/sparse_parts.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll {
namespace {

// Operands: values, and the row number of each; row numbers rise from 0.
class SparseSoftmax final : public OpOf<SparseSoftmax> {
 public:
  explicit SparseSoftmax(std::int64_t rows) noexcept : rows_(rows) {}
  const char* name() const noexcept override { return "sparse_softmax"; }
  std::string input_name(std::size_t input) const override { return input == 0 ? "values" : "rows"; }
  void infer(const Specs& in, SpecList& out) const override {
    require_floating(*this, in.dtype(0));
    out.add(in.shape(0), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override { softmax_runs(run.in[0], run.in[1], run.out[0]); }
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(1), .outputs = slot(0)}; }
  void gradient(GradientContext& c) const override {
    if (!c.wants(0)) return;
    const Tensor &y = c.output(0), &g = c.grad(), &rows = c.input(1);
    c.give(0, (g - gather(sum_at(g * y, rows, rows_), rows)) * y);
  }
  bool operator==(const SparseSoftmax&) const = default;

 private:
  std::int64_t rows_;
};

// Merges the places of two sparse tensors, in order. Calls f(place, k, l) for each: the entries of a and b there, -1
// for none.
template <class F>
void each_of_both(const Tensor& a, const Tensor& b, F&& f) {
  const std::int64_t *x = reading(a), *y = reading(b), width = a.shape()[1];
  const std::int64_t left = a.shape()[0], right = b.shape()[0];
  std::int64_t k = 0, l = 0;
  while (k < left || l < right) {
    int order = k == left ? 1 : l == right ? -1 : 0;
    for (std::int64_t axis = 0; order == 0 && axis < width; ++axis) order = (x[axis] > y[axis]) - (x[axis] < y[axis]);
    f(order <= 0 ? x : y, order <= 0 ? k : -1, order >= 0 ? l : -1);
    if (order <= 0) ++k, x += width;
    if (order >= 0) ++l, y += width;
  }
}

}  // namespace

SparseTensor operator+(const SparseTensor& a, const SparseTensor& b) {
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype())
    throw InvalidArgument(fmt::format("add: sparse {} of {} and sparse {} of {}; give two of one shape and dtype",
                                      a.shape().to_string(), dtype_name(a.dtype()), b.shape().to_string(),
                                      dtype_name(b.dtype())));
  const Tensor x = a.indices(), y = b.indices();
  std::int64_t count = 0;
  each_of_both(x, y, [&](const std::int64_t*, std::int64_t, std::int64_t) { ++count; });
  const Tensor indices = new_indices({count, a.rank()}, a.values(), "add"),
               positions = new_indices({a.num_entries() + b.num_entries()}, a.values(), "add");
  std::int64_t *to = filling(indices), *position = filling(positions), next = 0;
  each_of_both(x, y, [&](const std::int64_t* place, std::int64_t k, std::int64_t l) {
    to = std::copy_n(place, a.rank(), to);
    if (k >= 0) position[k] = next;
    if (l >= 0) position[a.num_entries() + l] = next;
    ++next;
  });
  const Tensor values = sum_at(concat({a.values(), b.values()}), positions, count);
  const SparseTensor sum = SparseParts::coo(indices, values, a.shape());
  return a.format() == SparseFormat::csr && b.format() == SparseFormat::csr ? sum.to_csr() : sum;
}

SparseTensor operator-(const SparseTensor& a, const SparseTensor& b) { return a + -b; }
SparseTensor operator-(const SparseTensor& x) { return x.with_values(-x.values()); }
SparseTensor operator*(const SparseTensor& x, const Number& number) { return x.with_values(x.values() * number); }
SparseTensor operator*(const Number& number, const SparseTensor& x) { return x * number; }
SparseTensor operator/(const SparseTensor& x, const Number& number) { return x.with_values(x.values() / number); }

SparseTensor sparse_softmax(const SparseTensor& x) {
  const Tensor indices = x.indices(), rows = new_indices({x.num_entries()}, x.values(), "sparse_softmax");
  const std::int64_t *at = reading(indices), width = static_cast<std::int64_t>(x.rank());
  std::int64_t *to = filling(rows), row = 0;
  for (std::int64_t k = 0; k < x.num_entries(); ++k, at += width) {
    if (k > 0 && !std::equal(at, at + width - 1, at - width)) ++row;
    to[k] = row;
  }
  return x.with_values(execute(SparseSoftmax(row + 1), x.values(), rows));
}

}  // namespace plimsoll
