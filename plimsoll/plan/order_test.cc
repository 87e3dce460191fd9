#include "plimsoll/plan/order.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <limits>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

std::size_t best_of_all(const std::vector<Operation>& operations, std::vector<int>& order) {
  if (order.size() == operations.size()) return order_peak(operations, order);
  std::size_t best = std::numeric_limits<std::size_t>::max();
  for (int i = 0; i < static_cast<int>(operations.size()); ++i) {
    const auto done = [&](int op) { return std::find(order.begin(), order.end(), op) != order.end(); };
    if (done(i) || !std::all_of(operations[i].inputs.begin(), operations[i].inputs.end(), done)) continue;
    order.push_back(i);
    best = std::min(best, best_of_all(operations, order));
    order.pop_back();
  }
  return best;
}

std::vector<Operation> random_graph(int most) {
  std::vector<Operation> operations(*rc::gen::inRange(1, most + 1));
  for (int i = 0; i < static_cast<int>(operations.size()); ++i) {
    operations[i].output_bytes = *rc::gen::inRange(0, 20);
    operations[i].workspace_bytes = *rc::gen::inRange(0, 5);
    operations[i].keep_output = *rc::gen::inRange(0, 6) == 0;
    for (int e = *rc::gen::inRange(0, 3); e > 0 && i > 0; --e) operations[i].inputs.push_back(*rc::gen::inRange(0, i));
  }
  return operations;
}

TEST(OrderOperations, EqualsTheBestOfAllOrdersOnSmallGraphs) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<Operation> operations = random_graph(7);
    const OrderResult got = order_operations(operations);
    std::vector<int> order;
    RC_ASSERT(got.is_optimal);
    RC_ASSERT(got.peak == best_of_all(operations, order));
    RC_ASSERT(got.peak == order_peak(operations, got.order));
  }));
}

TEST(OrderOperations, IsNeverWorseThanTheNaturalOrderWhenItSearchesABeam) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<Operation> operations = random_graph(60);
    const OrderResult got = order_operations(operations, {.exact_states = 0});
    RC_ASSERT(got.peak <= got.natural_peak);
    RC_ASSERT(got.peak == order_peak(operations, got.order));
  }));
}

// Wide first, as a careless front end writes it: all branches are opened before any is closed.
std::vector<Operation> branches(int count, int depth) {
  std::vector<Operation> operations = {{.output_bytes = 1}};
  std::vector<int> ends(count, 0);
  for (int d = 0; d < depth; ++d)
    for (int& end : ends) {
      operations.push_back({.inputs = {end}, .output_bytes = d + 1 < depth ? 1000u : 1u});
      end = static_cast<int>(operations.size()) - 1;
    }
  operations.push_back({.inputs = ends, .output_bytes = 1});
  return operations;
}

TEST(OrderOperations, RunsBranchesOneAfterTheOther) {
  const OrderResult exact = order_operations(branches(4, 3));
  EXPECT_TRUE(exact.is_optimal);
  EXPECT_GE(exact.natural_peak, 4000u);
  EXPECT_LE(exact.peak, 2010u);
  const OrderResult beam = order_operations(branches(40, 3));
  EXPECT_LE(beam.peak, 2100u);
  EXPECT_GE(beam.natural_peak, 40000u);
}

TEST(OrderOperations, OrdersALongChainOfPiecesExactly) {
  std::vector<Operation> operations;
  for (int block = 0; block < 50; ++block) {
    const int base = static_cast<int>(operations.size());
    for (Operation op : branches(4, 3)) {
      for (int& input : op.inputs) input += base;
      if (op.inputs.empty() && base > 0) op.inputs = {base - 1};
      operations.push_back(op);
    }
  }
  const OrderResult got = order_operations(operations);
  EXPECT_TRUE(got.is_optimal);
  EXPECT_LE(got.peak, 2010u);
}

TEST(OrderOperations, RefusesInputsThatComeLater) {
  EXPECT_THROW(order_operations(std::vector<Operation>{{.inputs = {0}}}), InvalidArgument);
  EXPECT_THROW(order_operations(std::vector<Operation>{{.inputs = {-1}}}), InvalidArgument);
  EXPECT_TRUE(order_operations({}).order.empty());
}

TEST(OrderPeak, RefusesWhatIsNotAnOrder) {
  const std::vector<Operation> operations = {{.output_bytes = 1}, {.inputs = {0}, .output_bytes = 1}};
  EXPECT_THROW(order_peak(operations, std::vector<int>{1, 0}), InvalidArgument);
  EXPECT_THROW(order_peak(operations, std::vector<int>{0, 0}), InvalidArgument);
  EXPECT_THROW(order_peak(operations, std::vector<int>{0}), InvalidArgument);
  EXPECT_EQ(order_peak(operations, std::vector<int>{0, 1}), 2u);
}

}  // namespace
}  // namespace plimsoll
