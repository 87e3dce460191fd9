#include "plimsoll/ops/ragged_tensor.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <sstream>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

RaggedTensor small() { return {constant({1.f, 2.f, 3.f, 4.f}), constant({0, 3, 3, 4})}; }

TEST(Ragged, HasRowsOfDifferentLengths) {
  const RaggedTensor r = small();
  EXPECT_EQ(r.num_rows(), 3);
  EXPECT_EQ(r.max_length(), 3);
  EXPECT_EQ(r.shape(), Shape({3, -1}));
  EXPECT_EQ(r.dtype(), f32);
  EXPECT_EQ(r.nbytes(), 4 * 4u + 4 * 8u);
  EXPECT_THAT(r.row(0).to_vector<float>(), ElementsAre(1, 2, 3));
  EXPECT_EQ(r.row(1).size(), 0u);
  EXPECT_THAT(r.row(-1).to_vector<float>(), ElementsAre(4));
  EXPECT_THAT(r.row_lengths().to_vector<std::int64_t>(), ElementsAre(3, 0, 1));
  EXPECT_THAT([&] { r.row(3); }, ThrowsMessage<InvalidArgument>(HasSubstr("ragged: row 3 of 3")));
  EXPECT_THROW(r.row(-4), InvalidArgument);
}

TEST(Ragged, IsMadeOfRowsAndOfLengths) {
  const RaggedTensor rows = RaggedTensor::from_rows({ones({2, 3}), zeros({0, 3}), ones({1, 3})});
  EXPECT_THAT(rows.row_splits().to_vector<std::int64_t>(), ElementsAre(0, 2, 2, 3));
  EXPECT_EQ(rows.shape(), Shape({3, -1, 3}));
  const RaggedTensor lengths = RaggedTensor::from_row_lengths(constant({7, 8, 9}), constant({1, 2}));
  EXPECT_THAT(lengths.row(1).to_vector<int>(), ElementsAre(8, 9));
  EXPECT_THROW(RaggedTensor::from_rows({}), InvalidArgument);
  EXPECT_THROW(RaggedTensor::from_rows({ones({2, 3}), ones({2, 2})}), InvalidArgument);
  EXPECT_THROW(RaggedTensor::from_rows({constant(1.f)}), InvalidArgument);
}

TEST(Ragged, PadsAndCuts) {
  const RaggedTensor r = small();
  EXPECT_THAT(r.to_padded().to_vector<float>(), ElementsAre(1, 2, 3, 0, 0, 0, 4, 0, 0));
  EXPECT_THAT(r.to_padded({.value = -1, .max_length = 2}).to_vector<float>(), ElementsAre(1, 2, -1, -1, 4, -1));
  EXPECT_EQ(r.to_padded({.max_length = 0}).shape(), Shape({3, 0}));
  EXPECT_THAT(r.mask().to_vector<bool>(), ElementsAre(true, true, true, false, false, false, true, false, false));
  EXPECT_THAT(r.mask(1).to_vector<bool>(), ElementsAre(true, false, true));
  EXPECT_THROW(r.to_padded({.max_length = -2}), InvalidArgument);
  EXPECT_THROW(r.mask(-2), InvalidArgument);
  const Tensor padded = constant({{1, 2, 3}, {4, 5, 6}});
  EXPECT_THAT(RaggedTensor::from_padded(padded, constant({1, 3})).values().to_vector<int>(), ElementsAre(1, 4, 5, 6));
}

TEST(Ragged, RefusesMalformedSplits) {
  const Tensor values = constant({1.f, 2.f, 3.f});
  const auto make = [&](std::vector<int> splits) { return RaggedTensor(values, from_vector(splits, {splits.size()})); };
  EXPECT_THAT([&] { make({1, 3}); }, ThrowsMessage<InvalidArgument>(HasSubstr("ragged: row split 0 is 1")));
  EXPECT_THAT(
      [&] {
        make({0, 2, 1, 3});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("ragged: row split 2 is 1 after 2; splits rise from 0")));
  EXPECT_THAT([&] { make({0, 4, 3}); }, ThrowsMessage<InvalidArgument>(HasSubstr("row split 1 is 4")));
  EXPECT_THAT(
      [&] {
        make({0, 2});
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("row split 1 is 2"), HasSubstr("values, 3"))));
  EXPECT_THAT([&] { make({}); }, ThrowsMessage<InvalidArgument>(HasSubstr("no row splits")));
  EXPECT_THROW(RaggedTensor(values, constant({0.f, 3.f})), InvalidArgument);
  EXPECT_THROW(RaggedTensor(values, constant({{0, 3}})), InvalidArgument);
  EXPECT_THROW(RaggedTensor(constant(1.f), constant({0, 1})), InvalidArgument);
  EXPECT_THROW(RaggedTensor(Tensor(), constant({0, 1})), InvalidArgument);
  EXPECT_THAT(
      [&] {
        RaggedTensor::from_row_lengths(values, constant({4, -1}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("length 4 of row 0 is outside of 0 to 3")));
  EXPECT_THROW(RaggedTensor::from_row_lengths(values, constant({1, 1})), InvalidArgument);
}

TEST(Ragged, RefusesLengthsThatDoNotFitThePadding) {
  const Tensor padded = ones({2, 3});
  EXPECT_THAT(
      [&] {
        RaggedTensor::from_padded(padded, constant({1, 4}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("ragged: length 4 of row 1 is outside of 0 to 3")));
  EXPECT_THROW(RaggedTensor::from_padded(padded, constant({1, -1})), InvalidArgument);
  EXPECT_THROW(RaggedTensor::from_padded(padded, constant({1})), InvalidArgument);
  EXPECT_THROW(RaggedTensor::from_padded(ones({2}), constant({1, 1})), InvalidArgument);
  EXPECT_THROW(small().with_values(ones({3})), InvalidArgument);
}

TEST(Ragged, MayHaveNoRows) {
  const RaggedTensor none(zeros({0, 2}), constant({0}));
  EXPECT_EQ(none.num_rows(), 0);
  EXPECT_EQ(none.to_padded().shape(), Shape({0, 0, 2}));
  EXPECT_EQ(none.mask().shape(), Shape({0, 0}));
  EXPECT_EQ(none.row_lengths().size(), 0u);
  const RaggedTensor back = RaggedTensor::from_padded(none.to_padded(), none.row_lengths());
  EXPECT_EQ(back.values().shape(), Shape({0, 2}));
}

TEST(Ragged, IsCountedTidiedAndDisposedOfAsItsParts) {
  const MemoryInfo before = memory();
  {
    const RaggedTensor r = tidy([] { return RaggedTensor::from_rows({ones({2}), ones({1})}); });
    EXPECT_EQ(memory().num_tensors, before.num_tensors + 2);
    EXPECT_EQ(r.with_values(r.values() * 2.f).row(1).item<float>(), 2);
    dispose(r);
    EXPECT_TRUE(r.is_disposed());
    EXPECT_THROW(r.to_padded(), Disposed);
    r.dispose();
  }
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
}

TEST(Ragged, PrintsItsLengths) {
  std::ostringstream out;
  out << small();
  EXPECT_EQ(out.str(), "<RaggedTensor: shape=(3, None), dtype=float32, device=CPU:0, row_lengths=[3, 0, 1]>");
  const RaggedTensor many(zeros({0}), zeros({20}, i64));
  EXPECT_THAT(to_string(many), HasSubstr("0, ...]>"));
}

TEST(RaggedProperty, ComesBackFromItsPaddingInEveryDtype) {
  EXPECT_TRUE(rc::check([] {
    const auto lengths = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 6));
    int total = 0;
    for (const int length : lengths) total += length;
    const DType dtype = *rc::gen::element(f32, f64, i8, i32, f16, boolean);
    const Tensor values = (arange(total * 2) % 7).reshape({total, 2}).cast(dtype);
    const RaggedTensor r = RaggedTensor::from_row_lengths(values, from_vector(lengths, {lengths.size()}));
    const Tensor padded = r.to_padded({.value = 1});
    const RaggedTensor back = RaggedTensor::from_padded(padded, r.row_lengths());
    RC_ASSERT(back.values().cast(f64).to_vector<double>() == values.cast(f64).to_vector<double>());
    RC_ASSERT(back.row_splits().to_vector<std::int64_t>() == r.row_splits().to_vector<std::int64_t>());
    RC_ASSERT(boolean_mask(padded, r.mask()).cast(f64).to_vector<double>() == values.cast(f64).to_vector<double>());
    for (const double padding : boolean_mask(padded, !r.mask()).cast(f64).to_vector<double>()) RC_ASSERT(padding == 1);
  }));
}

}  // namespace
}  // namespace plimsoll
