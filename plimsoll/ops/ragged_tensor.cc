#include "plimsoll/ops/ragged_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/sparse_rows.h"
#include "plimsoll/ops/axis_list.h"
#include "plimsoll/ops/check_indices.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

constexpr const char* kRagged = "ragged";

// [rows, width, ...] of values [total, ...]. Operands: values, row splits.
class PadRows final : public OpOf<PadRows> {
 public:
  PadRows(std::int64_t width, const Number& value) noexcept : width_(width), value_(value) {}
  const char* name() const noexcept override { return "to_padded"; }
  std::string input_name(std::size_t input) const override { return input == 0 ? "values" : "row splits"; }
  void infer(const Specs& in, SpecList& out) const override {
    SizeList sizes;
    sizes.add(in.shape(1)[0] == kUnknownSize ? kUnknownSize : in.shape(1)[0] - 1);
    sizes.add(width_);
    sizes.add(in.shape(0).sizes().subspan(1));
    out.add(sizes.shape(), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    pad_rows(run.in[0], run.in[1], value_.to(run.in[0].dtype()), run.out[0]);
  }
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(1)}; }
  void gradient(GradientContext& c) const override;
  bool operator==(const PadRows&) const = default;

 private:
  std::int64_t width_;
  Number value_;
};

// The inverse, to `total` values. Operands: padded, row splits.
class UnpadRows final : public OpOf<UnpadRows> {
 public:
  explicit UnpadRows(std::int64_t total) noexcept : total_(total) {}
  const char* name() const noexcept override { return "from_padded"; }
  std::string input_name(std::size_t input) const override { return input == 0 ? "padded" : "row splits"; }
  void infer(const Specs& in, SpecList& out) const override {
    SizeList sizes;
    sizes.add(total_);
    sizes.add(in.shape(0).sizes().subspan(2));
    out.add(sizes.shape(), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override { unpad_rows(run.in[0], run.in[1], run.out[0]); }
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(1)}; }
  void gradient(GradientContext& c) const override {
    if (c.wants(0)) c.give(0, execute(PadRows(c.input_shape(0)[1], 0), c.grad(), c.input(1)));
  }
  bool operator==(const UnpadRows&) const = default;

 private:
  std::int64_t total_;
};

void PadRows::gradient(GradientContext& c) const {
  if (c.wants(0)) c.give(0, execute(UnpadRows(c.input_shape(0)[0]), c.grad(), c.input(1)));
}

const std::int64_t* elements(const Tensor& tensor) {
  require_host(tensor, kRagged);
  return tensor.view().data<std::int64_t>();
}

// A vector of i64, on the same buffer if it already is one.
Tensor as_vector(const Tensor& x, const char* name) {
  if (x.is_empty_handle() || x.is_disposed()) refuse_disposed(x, kRagged, name);
  require_index_dtype(x.dtype(), kRagged, name);
  if (x.rank() != 1)
    throw InvalidArgument(fmt::format("ragged: {} are {}; give a vector", name, x.shape().to_string()));
  return x.dtype() == i64 ? x.reshape(x.shape()) : x.cast(i64);
}

void require_values(const Tensor& values, const char* name) {
  if (values.is_empty_handle() || values.is_disposed()) refuse_disposed(values, kRagged, name);
  if (values.rank() == 0) throw InvalidArgument(fmt::format("ragged: {} are a scalar; give [total, ...]", name));
}

// The splits of rows of these lengths, each of which is at most `most`.
Tensor splits_of(const Tensor& lengths, std::int64_t most) {
  Tensor splits = make_tensor({.op = kRagged}, {lengths.size() + 1}, i64, device_of(lengths));
  const std::int64_t* const length = elements(lengths);
  std::int64_t* const to = writable(splits).data<std::int64_t>();
  to[0] = 0;
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    if (length[r] < 0 || length[r] > most)
      throw InvalidArgument(fmt::format("ragged: length {} of row {} is outside of 0 to {}", length[r], r, most));
    to[r + 1] = to[r] + length[r];
  }
  return splits;
}

}  // namespace

RaggedTensor::RaggedTensor(const Tensor& values, const Tensor& row_splits) {
  require_values(values, "values");
  splits_ = as_vector(row_splits, "row splits");
  const std::int64_t total = values.shape()[0], count = splits_.shape()[0], *split = elements(splits_);
  if (count == 0) throw InvalidArgument("ragged: there are no row splits; give rows + 1 of them, from 0 on");
  for (std::int64_t r = 0; r < count; ++r)
    if (split[r] < (r == 0 ? 0 : split[r - 1]) || split[r] > (r == 0 ? 0 : total) ||
        (r == count - 1 && split[r] != total))
      throw InvalidArgument(fmt::format("ragged: row split {} is {}{}; splits rise from 0 to the number of values, {}",
                                        r, split[r], r == 0 ? std::string() : fmt::format(" after {}", split[r - 1]),
                                        total));
  values_ = values.reshape(values.shape());
}

RaggedTensor RaggedTensor::from_row_lengths(const Tensor& values, const Tensor& lengths) {
  require_values(values, "values");
  return {values, splits_of(as_vector(lengths, "row lengths"), values.shape()[0])};
}

RaggedTensor RaggedTensor::from_rows(const std::vector<Tensor>& rows) {
  if (rows.empty()) throw InvalidArgument("ragged: from_rows of no rows; give one at least, to know their shape");
  for (const Tensor& row : rows) require_values(row, "rows");
  const Tensor values = plimsoll::concat(rows);
  RaggedTensor result;
  result.splits_ = make_tensor({.op = kRagged}, {rows.size() + 1}, i64, device_of(values));
  require_host(values, kRagged);
  std::int64_t* const to = writable(result.splits_).data<std::int64_t>();
  to[0] = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) to[r + 1] = to[r] + rows[r].shape()[0];
  result.values_ = values;
  return result;
}

RaggedTensor RaggedTensor::from_padded(const Tensor& padded, const Tensor& lengths) {
  require_values(padded, "padded");
  const Tensor wide = as_vector(lengths, "row lengths");
  if (padded.rank() < 2 || padded.shape()[0] != wide.shape()[0])
    throw InvalidArgument(
        fmt::format("ragged: padded is {}, with {} row lengths; give [rows, width, ...] and a length "
                    "for each row",
                    padded.shape().to_string(), wide.size()));
  RaggedTensor result;
  result.splits_ = splits_of(wide, padded.shape()[1]);
  result.values_ = execute(UnpadRows(elements(result.splits_)[wide.size()]), padded, result.splits_);
  return result;
}

Shape RaggedTensor::shape() const {
  std::vector<std::int64_t> sizes = {num_rows(), kUnknownSize};
  sizes.insert(sizes.end(), values_.shape().begin() + 1, values_.shape().end());
  return Shape(sizes);
}

Tensor RaggedTensor::row(std::int64_t index) const {
  if (index < -num_rows() || index >= num_rows())
    throw InvalidArgument(fmt::format("ragged: row {} of {}; use 0 to {}", index, num_rows(), num_rows() - 1));
  const std::int64_t *split = elements(splits_), r = index < 0 ? index + num_rows() : index;
  return values_.slice({split[r]}, {split[r + 1] - split[r]});
}

Tensor RaggedTensor::row_lengths() const {
  const std::int64_t* const split = elements(splits_);
  Tensor lengths = make_tensor({.op = "row_lengths"}, {num_rows()}, i64, device_of(splits_));
  std::int64_t* const to = writable(lengths).data<std::int64_t>();
  for (std::int64_t r = 0; r < num_rows(); ++r) to[r] = split[r + 1] - split[r];
  return lengths;
}

std::int64_t RaggedTensor::max_length() const {
  const std::int64_t* const split = elements(splits_);
  std::int64_t longest = 0;
  for (std::int64_t r = 0; r < num_rows(); ++r) longest = std::max(longest, split[r + 1] - split[r]);
  return longest;
}

RaggedTensor RaggedTensor::with_values(const Tensor& values) const {
  require_values(values, "values");
  if (values.shape()[0] != values_.shape()[0])
    throw InvalidArgument(fmt::format("with_values: values are {}, for {} in the rows; give as many",
                                      values.shape().to_string(), values_.shape()[0]));
  RaggedTensor result = *this;
  result.values_ = values;
  return result;
}

Tensor RaggedTensor::to_padded(const PaddedOptions& options) const {
  if (options.max_length < -1)
    throw InvalidArgument(
        fmt::format("to_padded: max_length is {}; give 0 or more, or -1 for the longest row", options.max_length));
  return execute(PadRows(options.max_length == -1 ? max_length() : options.max_length, options.value), values_,
                 splits_);
}

Tensor RaggedTensor::mask(std::int64_t max_length) const {
  if (max_length < -1)
    throw InvalidArgument(fmt::format("mask: max_length is {}; give 0 or more, or -1 for the longest row", max_length));
  const std::int64_t width = max_length == -1 ? this->max_length() : max_length, *split = elements(splits_);
  Tensor mask = make_tensor({.op = "mask"}, {num_rows(), width}, boolean, device_of(splits_));
  bool* const to = writable(mask).data<bool>();
  for (std::int64_t r = 0; r < num_rows(); ++r)
    for (std::int64_t i = 0; i < width; ++i) to[r * width + i] = i < split[r + 1] - split[r];
  return mask;
}

void RaggedTensor::dispose() const noexcept {
  values_.dispose();
  splits_.dispose();
}

std::string to_string(const RaggedTensor& ragged) {
  constexpr std::int64_t kShown = 8;
  const std::int64_t* const split = elements(ragged.row_splits());
  std::string lengths;
  for (std::int64_t r = 0; r < std::min(kShown, ragged.num_rows()); ++r)
    lengths += fmt::format("{}{}", r == 0 ? "" : ", ", split[r + 1] - split[r]);
  return fmt::format("<RaggedTensor: shape={}, dtype={}, device={}, row_lengths=[{}{}]>",
                     ragged.shape().to_tuple_string(), dtype_name(ragged.dtype()), ragged.values().device(), lengths,
                     ragged.num_rows() > kShown ? ", ..." : "");
}

std::ostream& operator<<(std::ostream& out, const RaggedTensor& ragged) { return out << to_string(ragged); }

}  // namespace plimsoll
