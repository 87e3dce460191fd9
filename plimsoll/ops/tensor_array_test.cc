#include "plimsoll/ops/tensor_array.h"

#include <gmock/gmock.h>

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

Tensor row() { return constant({1.f, 2.f}); }

TEST(TensorArray, GivesBackWhatWasWritten) {
  TensorArray array(f32, {.size = 2});
  array.write(1, row() * 2.f).write(0, row());
  EXPECT_EQ(array.size(), 2);
  EXPECT_EQ(array.dtype(), f32);
  EXPECT_EQ(array.element_shape(), Shape({2}));
  EXPECT_EQ(array.stack().shape(), Shape({2, 2}));
  EXPECT_THAT(array.stack().to_vector<float>(), ElementsAre(1, 2, 2, 4));
  EXPECT_THAT(array.concat().to_vector<float>(), ElementsAre(1, 2, 2, 4));
  EXPECT_THAT(array.gather({1, 1}).to_vector<float>(), ElementsAre(2, 4, 2, 4));
  EXPECT_THAT(array.gather(constant({0})).to_vector<float>(), ElementsAre(1, 2));
  EXPECT_THAT(array.read(1).to_vector<float>(), ElementsAre(2, 4));
}

TEST(TensorArray, GrowsWhenAsked) {
  TensorArray array(f32, {.size = 0, .dynamic_size = true}), fixed(f32, {.size = 1});
  array.write(2, row());
  EXPECT_EQ(array.size(), 3);
  EXPECT_THAT(array.stack().to_vector<float>(), ElementsAre(0, 0, 0, 0, 1, 2));
  EXPECT_THAT([&] { fixed.write(1, row()); },
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("TensorArray: write to index 1 of an array of size 1"), HasSubstr("dynamic_size"))));
  EXPECT_THROW(array.write(-1, row()), InvalidArgument);
  EXPECT_THROW(array.write(INT64_MAX, row()), InvalidArgument);
  EXPECT_THROW(array.read(3), InvalidArgument);
  EXPECT_THROW(array.gather({0, 3}), InvalidArgument);
  EXPECT_THROW(TensorArray(f32, {.size = -1}), InvalidArgument);
  EXPECT_THAT(([] { TensorArray(f32, {.size = std::int64_t{1} << 40}); }),
              ThrowsMessage<InvalidArgument>(HasSubstr("TensorArray: the size is 1099511627776; give 0 to 16777216")));
  EXPECT_EQ(array.size(), 3);
}

TEST(TensorArray, IsWrittenAndReadOnce) {
  TensorArray array(f32, {.size = 2});
  array.write(0, row());
  EXPECT_THAT([&] { array.write(0, row()); }, ThrowsMessage<FailedPrecondition>(HasSubstr("index 0 was written")));
  array.read(0);
  EXPECT_THAT([&] { array.read(0); },
              ThrowsMessage<FailedPrecondition>(HasSubstr("index 0 was read before, which cleared it")));
  EXPECT_THAT([&] { array.write(0, row()); }, ThrowsMessage<FailedPrecondition>(HasSubstr("written and read before")));
  EXPECT_THROW(array.stack(), FailedPrecondition);
  EXPECT_THROW(array.concat(), FailedPrecondition);
  EXPECT_THAT(
      [&] {
        array.scatter({1, 1}, ones({2, 2}));
      },
      ThrowsMessage<FailedPrecondition>(HasSubstr("index 1 is given twice")));
}

TEST(TensorArray, IsReadAndWrittenOftenWhenNothingIsCleared) {
  TensorArray array(f32, {.size = 1, .clear_after_read = false});
  array.write(0, row());
  EXPECT_THAT(array.read(0).to_vector<float>(), ElementsAre(1, 2));
  EXPECT_THAT(array.read(0).to_vector<float>(), ElementsAre(1, 2));
  array.write(0, row() + 1.f);
  EXPECT_THAT(array.read(0).to_vector<float>(), ElementsAre(2, 3));
}

TEST(TensorArray, ChecksDtypesAndShapes) {
  TensorArray array(f32, {.size = 3});
  EXPECT_THAT(
      [&] {
        array.write(0, constant({1, 2}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("a value of int32 at index 0 of an array of float32")));
  array.write(0, row());
  EXPECT_THAT([&] { array.write(1, ones({3})); },
              ThrowsMessage<InvalidArgument>(HasSubstr("shape [3] at index 1 of an array of elements [2]")));
  EXPECT_THROW(array.write(1, Tensor()), InvalidArgument);
  const Tensor gone = ones({2});
  gone.dispose();
  EXPECT_THROW(array.write(1, gone), Disposed);
  TensorArray partly(f32, {.size = 2, .element_shape = {-1, 2}, .infer_shape = false});
  partly.write(0, ones({3, 2})).write(1, zeros({1, 2}));
  EXPECT_EQ(partly.concat().shape(), Shape({4, 2}));
  EXPECT_THROW(partly.stack(), InvalidArgument);
  TensorArray other(f32, {.size = 1, .element_shape = {-1, 2}});
  EXPECT_THROW(other.write(0, ones({2})), InvalidArgument);
  EXPECT_THROW(other.write(0, ones({2, 3})), InvalidArgument);
}

TEST(TensorArray, HasZerosWhereNothingWasWritten) {
  TensorArray unknown(f32, {.size = 2}), known(f64, {.size = 2, .element_shape = {3}});
  EXPECT_THAT([&] { unknown.read(1); }, ThrowsMessage<FailedPrecondition>(HasSubstr("index 1 was never written")));
  EXPECT_EQ(known.read(0).to_vector<double>(), std::vector<double>(3, 0));
  EXPECT_EQ(known.gather({1}).shape(), Shape({1, 3}));
}

TEST(TensorArray, MayHaveNoElements) {
  const TensorArray unknown(f32), known(f32, {.element_shape = {3}});
  EXPECT_EQ(known.stack().shape(), Shape({0, 3}));
  EXPECT_EQ(known.concat().shape(), Shape({0}));
  EXPECT_THAT([&] { unknown.stack(); }, ThrowsMessage<FailedPrecondition>(HasSubstr("give an element_shape")));
  EXPECT_THROW(unknown.concat(), FailedPrecondition);
}

TEST(TensorArray, TakesManyElementsAtOnce) {
  TensorArray array(f32, {.size = 3}), scattered(f32, {.dynamic_size = true}),
      pieces(f32, {.size = 2, .infer_shape = false});
  const Tensor x = from_vector(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
  EXPECT_THAT(array.unstack(x).read(2).to_vector<float>(), ElementsAre(5, 6));
  scattered.scatter({2, 0, 1}, x);
  EXPECT_THAT(scattered.stack().to_vector<float>(), ElementsAre(3, 4, 5, 6, 1, 2));
  pieces.split(x, {1, 2});
  EXPECT_EQ(pieces.read(1).shape(), Shape({2, 2}));
  TensorArray with_tensor(f32, {.size = 3});
  with_tensor.scatter(constant({0, 2, 1}), x);
  EXPECT_THAT(with_tensor.read(1).to_vector<float>(), ElementsAre(5, 6));
}

TEST(TensorArray, WritesAllOrNothing) {
  TensorArray array(f32, {.size = 2});
  const Tensor x = ones({3, 2});
  EXPECT_THROW(array.unstack(x), InvalidArgument);
  EXPECT_THROW(array.unstack(constant(1.f)), InvalidArgument);
  EXPECT_THROW(array.scatter({0}, x), InvalidArgument);
  EXPECT_THROW(array.scatter(constant({0.f}), x), InvalidArgument);
  EXPECT_THROW(array.scatter(constant({{0, 1, 1}}), x), InvalidArgument);
  EXPECT_THROW(array.split(x, {1, 1}), InvalidArgument);
  EXPECT_THROW(array.split(x, {1, 2}), InvalidArgument);
  EXPECT_FALSE(array.element_shape().is_set());
  array.write(0, row()).write(1, row());
}

TEST(TensorArray, KeepsItsElementsBeyondTheScopesThatMadeThem) {
  const MemoryInfo before = memory();
  {
    TensorArray array(f32, {.size = 3});
    for (int i = 0; i < 3; ++i) tidy([&] { array.write(i, row() * float(i)); });
    EXPECT_EQ(memory().num_tensors, before.num_tensors + 3);
    EXPECT_THAT(array.stack().to_vector<float>(), ElementsAre(0, 0, 1, 2, 2, 4));
    tidy([&] { array.read(0); });
    EXPECT_EQ(memory().num_tensors, before.num_tensors + 2);
    const Tensor mine = ones({2});
    TensorArray other(f32, {.size = 1});
    other.write(0, mine);
    mine.dispose();
    EXPECT_THAT(other.read(0).to_vector<float>(), ElementsAre(1, 1));
  }
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
}

TEST(TensorArray, IsSharedByItsCopiesAndReturnedFromScopes) {
  TensorArray array = tidy([] {
    TensorArray made(f32, {.size = 2});
    made.write(0, row()).write(1, row() + 1.f);
    return made;
  });
  TensorArray copy = array;
  copy.read(0);
  EXPECT_THROW(array.read(0), FailedPrecondition);
  EXPECT_THAT(array.read(1).to_vector<float>(), ElementsAre(2, 3));
  TensorArray gone(f32, {.size = 1});
  gone.write(0, row() * 3.f);
  dispose(gone);
  EXPECT_THROW(gone.read(0), Disposed);
  TensorArray also(f32, {.size = 1});
  also.write(0, row() * 3.f);
  also.dispose();
  EXPECT_THROW(also.stack(), Disposed);
}

}  // namespace
}  // namespace plimsoll
