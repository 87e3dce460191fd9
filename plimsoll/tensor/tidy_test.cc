#include "plimsoll/tensor/tidy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device_testing.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tensor_testing.h"

namespace plimsoll {
namespace {

std::size_t tensors() { return memory().num_tensors; }

class Tidy : public DeviceFixture {};

TEST_F(Tidy, ReleasesWhatWasMadeInsideAlsoWhenAHandleEscapes) {
  std::vector<Tensor> escaped;
  tidy([&] {
    escaped.push_back(some());
    escaped.push_back(some());
    EXPECT_EQ(tensors(), 2u);
  });
  EXPECT_EQ(tensors(), 0u);
  EXPECT_EQ(memory().num_bytes, 0u);
  for (const Tensor& tensor : escaped) {
    EXPECT_TRUE(tensor.is_disposed());
    EXPECT_THROW(tensor.to_vector<float>(), Disposed);
    EXPECT_EQ(tensor.shape(), Shape({4})) << "Stays readable.";
  }
}

TEST_F(Tidy, HandsWhatIsReturnedToTheScopeOutside) {
  const Tensor result = tidy([] {
    const Tensor inner = tidy([] {
      const Tensor lost = some();
      return some();
    });
    EXPECT_EQ(tensors(), 1u);
    EXPECT_FALSE(inner.is_disposed());
    return some();
  });
  EXPECT_EQ(tensors(), 1u);
  EXPECT_FALSE(result.is_disposed());
}

TEST_F(Tidy, ReturnsPlainValuesAndNothing) {
  EXPECT_EQ(tidy([] { return 7; }), 7);
  EXPECT_EQ(tidy([] { return std::string("text"); }), "text");
  const int value = 3;
  EXPECT_EQ(tidy([&]() -> const int& { return value; }), 3);
  tidy([] { some(); });
  EXPECT_EQ(tensors(), 0u);
}

TEST_F(Tidy, LeavesTensorsOfOutsideAlone) {
  const Tensor outside = some();
  tidy([&] { const Tensor copy = outside; });
  EXPECT_FALSE(outside.is_disposed());
  const Tensor returned = tidy([&] { return tidy([&] { return outside; }); });
  EXPECT_FALSE(outside.is_disposed());
  EXPECT_EQ(returned.id(), outside.id());
  EXPECT_EQ(tensors(), 1u);
}

TEST_F(Tidy, LeavesATensorOfTheOuterScopeWithTheOuterScope) {
  std::optional<Tensor> escaped;
  tidy([&] {
    const Tensor of_outer = some();
    escaped = tidy([&] { return of_outer; });
    EXPECT_FALSE(escaped->is_disposed());
  });
  EXPECT_TRUE(escaped->is_disposed());
}

// Five scopes inside each other, each with one tensor lost and one returned.
Tensor five(int level) {
  return tidy([&] {
    const std::size_t before = tensors();
    const Tensor lost = some();
    EXPECT_EQ(tensors(), before + 1);
    if (level < 5) {
      const Tensor inner = five(level + 1);
      EXPECT_EQ(tensors(), before + 2) << "level " << level << ": lost, and what the inner one returned";
    }
    const Tensor result = some();
    EXPECT_EQ(tensors(), before + 2) << "the inner result went with its handle";
    return result;
  });
}

TEST_F(Tidy, NestsFiveDeepWithExactCounts) {
  EXPECT_EQ(tensors(), 0u);
  {
    const Tensor result = five(1);
    EXPECT_EQ(tensors(), 1u);
  }
  EXPECT_EQ(tensors(), 0u);
}

TEST_F(Tidy, CountsHandlesThatAreStillHeldAtEachLevel) {
  std::vector<Tensor> held;  // So that nothing goes by its handle alone.
  tidy([&] {
    held.push_back(some());
    tidy([&] {
      held.push_back(some());
      tidy([&] {
        held.push_back(some());
        tidy([&] {
          held.push_back(some());
          tidy([&] {
            held.push_back(some());
            EXPECT_EQ(tensors(), 5u);
          });
          EXPECT_EQ(tensors(), 4u);
        });
        EXPECT_EQ(tensors(), 3u);
      });
      EXPECT_EQ(tensors(), 2u);
    });
    EXPECT_EQ(tensors(), 1u);
  });
  EXPECT_EQ(tensors(), 0u);
}

TEST_F(Tidy, ReturnsPartOfWhatAnInnerOneReturned) {
  std::vector<Tensor> all;
  const Tensor part = tidy([&] {
    all = tidy([] { return std::vector{some(), some(), some()}; });
    EXPECT_EQ(tensors(), 3u);
    return all[1];
  });
  EXPECT_EQ(tensors(), 1u);
  EXPECT_TRUE(all[0].is_disposed());
  EXPECT_FALSE(all[1].is_disposed());
}

TEST_F(Tidy, ReleasesAndPassesTheExceptionOn) {
  std::vector<Tensor> held;
  EXPECT_THROW(tidy([&] {
                 held.push_back(some());
                 tidy([&] {
                   held.push_back(some());
                   throw std::logic_error("stop");
                 });
               }),
               std::logic_error);
  EXPECT_THROW(tidy([&]() -> Tensor {
                 held.push_back(some());
                 throw 42;
               }),
               int);
  EXPECT_EQ(tensors(), 0u);
  EXPECT_EQ(ThreadContext::current().scope, nullptr);
}

TEST_F(Tidy, AcceptsADisposedResult) {
  const Tensor gone = tidy([] {
    Tensor x = some();
    x.dispose();
    return x;
  });
  EXPECT_TRUE(gone.is_disposed());
  EXPECT_EQ(tensors(), 0u);
}

TEST_F(Tidy, NeedsNoMoreRoomThanLiveTensors) {
  tidy([] {
    std::vector<Tensor> held;
    for (int i = 0; i < 100'000; ++i) {
      const Tensor passing = some({1});
      if (i % 1000 == 0) held.push_back(passing);
    }
    EXPECT_EQ(tensors(), 100u);
    std::set<const TensorRecord*> distinct;
    for (const Tensor& tensor : held) distinct.insert(tensor.record());
    EXPECT_EQ(distinct.size(), 100u);
  });
  EXPECT_EQ(tensors(), 0u);
}

TEST_F(Tidy, ReleasesAThousandTensors) {
  std::vector<Tensor> held;
  tidy([&] {
    for (int i = 0; i < 1000; ++i) held.push_back(some({1}));
  });
  EXPECT_EQ(tensors(), 0u);
}

TEST_F(Tidy, IsOptionalForTensors) {
  Tensor x = some();
  EXPECT_EQ(x.record()->owner.load(), nullptr);
  x = Tensor();
  EXPECT_EQ(tensors(), 0u);
}

class Keep : public DeviceFixture {};

TEST_F(Keep, SurvivesEveryScopeUntilItIsDisposedOf) {
  Tensor kept;
  tidy([&] { tidy([&] { kept = keep(some()); }); });
  EXPECT_FALSE(kept.is_disposed());
  EXPECT_EQ(tensors(), 1u);
  tidy([&] { tidy([&] { return kept; }); });
  EXPECT_FALSE(kept.is_disposed());
  dispose(kept);
  EXPECT_EQ(tensors(), 0u);
}

TEST_F(Keep, WorksFromAnInnerScopeForATensorOfTheOuterOne) {
  Tensor kept;
  tidy([&] {
    kept = some();
    tidy([&] { keep(kept); });
  });
  EXPECT_FALSE(kept.is_disposed());
}

TEST_F(Keep, SurvivesAnException) {
  Tensor kept;
  EXPECT_THROW(tidy([&] {
                 kept = keep(some());
                 throw std::logic_error("stop");
               }),
               std::logic_error);
  EXPECT_FALSE(kept.is_disposed());
}

TEST_F(Keep, DoesNotOutliveTheLastHandle) {
  tidy([] { keep(some()); });
  EXPECT_EQ(tensors(), 0u) << "Nobody could ever dispose of it.";
}

TEST_F(Keep, IgnoresDisposedTensorsAndEmptyHandles) {
  const Tensor gone = some();
  gone.dispose();
  EXPECT_TRUE(keep(gone).is_disposed());
  EXPECT_TRUE(keep(Tensor()).is_empty_handle());
  EXPECT_EQ(tensors(), 0u);
}

class Dispose : public DeviceFixture {};

TEST_F(Dispose, ActsThroughCopiesAndTwiceIsHarmless) {
  const Tensor x = some(), copy = x, other = some();
  dispose(x);
  EXPECT_TRUE(copy.is_disposed());
  EXPECT_EQ(tensors(), 1u);
  x.dispose();
  copy.dispose();
  dispose(std::vector{x, copy});
  EXPECT_EQ(tensors(), 1u);
  EXPECT_EQ(memory().num_data_buffers, 1u);
}

TEST_F(Dispose, OfAViewLeavesTheOthersOnTheBuffer) {
  const Tensor x = tensor_of<float>({4}, {1, 2, 3, 4}), view = make_view(x, "Reshape", {2, 2}, 0);
  EXPECT_EQ(memory().num_bytes, 16u);
  EXPECT_EQ(memory().num_data_buffers, 1u);
  EXPECT_EQ(tensors(), 2u);
  x.dispose();
  EXPECT_EQ(view.at<float>({1, 0}), 3.f);
  EXPECT_EQ(memory().num_bytes, 16u);
  view.dispose();
  EXPECT_EQ(memory().num_bytes, 0u);
}

TEST_F(Dispose, IgnoresNumbersTextAndEmptyHandles) {
  dispose(7);
  dispose("text");
  dispose(Tensor());
  dispose(std::vector<Tensor>(2));
}

TEST_F(Dispose, InsideOfATidyIsFine) {
  tidy([] {
    const Tensor x = some();
    x.dispose();
    EXPECT_EQ(tensors(), 0u);
  });
  EXPECT_EQ(tensors(), 0u);
}

class Scopes : public DeviceFixture {};

TEST_F(Scopes, HandOnWhatTheyAreToldToKeep) {
  Tensor lost, result;
  {
    TidyScope outer;
    {
      TidyScope inner;
      lost = some();
      result = inner.keep(some());
    }
    EXPECT_TRUE(lost.is_disposed());
    EXPECT_FALSE(result.is_disposed());
  }
  EXPECT_TRUE(result.is_disposed()) << "It belonged to the outer scope then.";
}

TEST_F(Scopes, EndAloneWhenTheyEndBeforeOneInside) {
  std::optional<TidyScope> outer, inner;
  outer.emplace();
  const Tensor of_outer = some();
  inner.emplace();
  const Tensor of_inner = some();
  outer.reset();
  EXPECT_TRUE(of_outer.is_disposed());
  EXPECT_FALSE(of_inner.is_disposed());
  ASSERT_EQ(logged_.size(), 1u);
  EXPECT_THAT(logged_[0], testing::HasSubstr("ended before a scope inside of it"));
  const Tensor later = some();
  inner.reset();
  EXPECT_TRUE(of_inner.is_disposed());
  EXPECT_TRUE(later.is_disposed());
  EXPECT_EQ(logged_.size(), 1u);
  EXPECT_EQ(ThreadContext::current().scope, nullptr);
}

TEST_F(Scopes, BelongToTheirThread) {
  TidyScope here;
  const Tensor mine = some();
  Tensor theirs;
  std::thread([&] {
    TidyScope there;
    tidy([] { some(); });
    theirs = some();
    keep(theirs);
  }).join();
  EXPECT_FALSE(mine.is_disposed());
  EXPECT_FALSE(theirs.is_disposed());
  EXPECT_EQ(tensors(), 2u);
}

TEST_F(Scopes, OfManyThreadsDoNotDisturbEachOther) {
  const Tensor shared = some();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const Tensor result = tidy([&] {
          const Tensor view = make_view(shared, "view", {2}, 0), lost = some();
          EXPECT_FALSE(lost.is_disposed());
          return some();
        });
        ASSERT_FALSE(result.is_disposed());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tensors(), 1u);
  EXPECT_EQ(memory().num_data_buffers, 1u);
}

TEST_F(Scopes, EndWhileAnotherThreadDropsTheirTensors) {
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<Tensor> handed;
    std::optional<std::thread> other;
    tidy([&] {
      for (int i = 0; i < 20; ++i) handed.push_back(some());
      other.emplace([&] { handed.clear(); });
    });
    other->join();
    ASSERT_EQ(tensors(), 0u);
    ASSERT_EQ(memory().num_bytes, 0u);
  }
}

}  // namespace
}  // namespace plimsoll
