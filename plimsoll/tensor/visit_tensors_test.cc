#include "plimsoll/tensor/visit_tensors.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <list>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tensor_testing.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

template <class T>
std::size_t count_in(const T& value) {
  std::size_t count = 0;
  visit_all_tensors(value, [&](const Tensor&) { ++count; });
  return count;
}

enum class Colour { kRed };
struct ById {
  bool operator()(const Tensor& a, const Tensor& b) const { return a.id() < b.id(); }
};
struct Plain {
  Tensor tensor;
  std::string text;
  int number = 0;
};
struct Deep {
  Plain plain;
  std::vector<Plain> list;
  std::optional<Tensor> maybe;
  std::variant<std::monostate, Tensor, int> either;
  std::unique_ptr<Tensor> owned;
};
struct Sixteen {
  int a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0, i = 0, j = 0, k = 0, l = 0, m = 0, n = 0, o = 0;
  Tensor last;
};
class Closed {  // No aggregate; says itself where its tensor is.
 public:
  explicit Closed(Tensor tensor) : tensor_(std::move(tensor)) {}
  template <class F>
  friend void visit_tensors(const Closed& value, F&& f) {
    f(value.tensor_);
  }

 private:
  Tensor tensor_;
};

TEST(VisitTensors, PassesOverWhatCannotHoldOne) {
  EXPECT_EQ(count_in(1), 0u);
  EXPECT_EQ(count_in(2.5), 0u);
  EXPECT_EQ(count_in(std::string("text")), 0u);
  EXPECT_EQ(count_in("text"), 0u);
  EXPECT_EQ(count_in(Colour::kRed), 0u);
  EXPECT_EQ(count_in(nullptr), 0u);
  EXPECT_EQ(count_in(Shape({1, 2})), 0u);
  EXPECT_EQ(count_in(std::vector<float>(3)), 0u);
  EXPECT_EQ(count_in(std::vector<bool>(3)), 0u);
  EXPECT_EQ(count_in(std::tuple<>()), 0u);
}

TEST(VisitTensors, LooksIntoContainers) {
  const Tensor x = some(), y = some();
  EXPECT_EQ(count_in(x), 1u);
  EXPECT_EQ(count_in(std::vector<Tensor>{x, y, x}), 3u);
  EXPECT_EQ(count_in(std::array<Tensor, 2>{x, y}), 2u);
  EXPECT_EQ(count_in(std::deque<Tensor>{x}), 1u);
  EXPECT_EQ(count_in(std::list<std::vector<Tensor>>{{x, y}, {}, {x}}), 3u);
  EXPECT_EQ(count_in(std::set<Tensor, ById>{x, y}), 2u);
  EXPECT_EQ(count_in(std::map<std::string, std::vector<Tensor>>{{"a", {x, y}}, {"b", {x}}}), 3u);
  EXPECT_EQ(count_in(std::unordered_map<int, Tensor>{{1, x}}), 1u);
}

TEST(VisitTensors, LooksIntoTuplesOptionalsVariantsAndPointers) {
  const Tensor x = some();
  EXPECT_EQ(count_in(std::pair(x, 1)), 1u);
  EXPECT_EQ(count_in(std::tuple(x, std::string(), std::vector{x})), 2u);
  EXPECT_EQ(count_in(std::optional<Tensor>()), 0u);
  EXPECT_EQ(count_in(std::optional(x)), 1u);
  EXPECT_EQ(count_in(std::variant<int, Tensor>(x)), 1u);
  EXPECT_EQ(count_in(std::variant<int, Tensor>(1)), 0u);
  EXPECT_EQ(count_in(std::make_unique<Tensor>(x)), 1u);
  EXPECT_EQ(count_in(std::shared_ptr<Tensor>()), 0u);
}

TEST(VisitTensors, LooksIntoPlainStructs) {
  const Tensor x = some();
  EXPECT_EQ(count_in(Plain{x, "text", 1}), 1u);
  EXPECT_EQ(count_in(Sixteen{.last = x}), 1u);
  const Deep deep{{x, "", 0}, {{x, "", 1}, {x, "", 2}}, x, x, std::make_unique<Tensor>(x)};
  EXPECT_EQ(count_in(deep), 6u);
}

TEST(VisitTensors, AsksATypeThatKnowsItself) {
  EXPECT_EQ(count_in(Closed(some())), 1u);
  EXPECT_EQ(count_in(std::vector<Closed>{Closed(some()), Closed(some())}), 2u);
}

template <class F>
void survives_tidy(F make, std::size_t tensors) {
  const std::size_t before = memory().num_tensors;
  {
    const auto value = tidy([&] {
      const Tensor lost = some();
      return make();
    });
    EXPECT_EQ(memory().num_tensors, before + tensors);
    visit_all_tensors(value, [](const Tensor& tensor) { EXPECT_FALSE(tensor.is_disposed()); });
    dispose(value);
    EXPECT_EQ(memory().num_tensors, before);
  }
}

TEST(VisitTensors, LetsEveryKindOfResultOutOfATidyAndDisposesOfIt) {
  survives_tidy([] { return some(); }, 1);
  survives_tidy([] { return std::map<std::string, std::vector<Tensor>>{{"a", {some(), some()}}}; }, 2);
  survives_tidy([] { return std::set<Tensor, ById>{some(), some()}; }, 2);
  survives_tidy([] { return std::optional<Tensor>(some()); }, 1);
  survives_tidy([] { return std::tuple(some(), 1, std::string("text"), std::vector{some()}); }, 2);
  survives_tidy([] { return std::variant<int, Tensor>(some()); }, 1);
  survives_tidy([] { return Plain{some(), "text", 7}; }, 1);
  survives_tidy(
      [] {
        return Deep{{some(), "", 0}, {{some(), "", 1}}, some(), some(), std::make_unique<Tensor>(some())};
      },
      5);
  survives_tidy([] { return Closed(some()); }, 1);
  survives_tidy([] { return 7; }, 0);
}

}  // namespace
}  // namespace plimsoll
