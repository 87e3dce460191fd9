#include "plimsoll/plan/order.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "plimsoll/base/error.h"
#include "plimsoll/plan/internal/order_piece.h"

namespace plimsoll::internal {
namespace {

void check_operations(std::span<const Operation> operations) {
  for (std::size_t i = 0; i < operations.size(); ++i)
    for (const int input : operations[i].inputs)
      if (input < 0 || input >= static_cast<int>(i))
        throw InvalidArgument("order: operation " + std::to_string(i) + " reads operation " + std::to_string(input) +
                              "; inputs must come before their readers");
}

// Numbers of operations that come after everything before them and before everything after them in every order: all
// earlier ones lead to it and all later ones come from it.
std::vector<char> find_separators(const OrderGraph& graph) {
  const int n = static_cast<int>(graph.inputs.size());
  std::vector<char> separates(n, 1);
  // i separates when each earlier operation but the last has a reader up to i, and each later one an input from i on.
  std::vector<int> reach(n + 1, 0);  // Difference array of numbers that are not separators.
  const auto forbid = [&](int first, int last) {
    if (first < last) ++reach[first], --reach[last];
  };
  for (int i = 0; i < n; ++i) {
    const int first_reader = graph.readers[i].empty() ? n : graph.readers[i].front();
    forbid(i + 1, first_reader);
    const int last_input = graph.inputs[i].empty() ? -1 : graph.inputs[i].back();
    forbid(last_input + 1, i);
  }
  int covered = 0;
  for (int i = 0; i < n; ++i) separates[i] = (covered += reach[i]) == 0;
  return separates;
}

std::size_t peak_after(const OrderProgress& before, std::span<const int> order, OrderProgress* after) {
  OrderProgress progress = before;
  for (const int operation : order) progress.run(operation);
  if (after) *after = progress;
  return progress.peak();
}

}  // namespace

std::size_t order_peak(std::span<const Operation> operations, std::span<const int> order) {
  check_operations(operations);
  const OrderGraph graph(operations);
  OrderProgress progress(graph);
  std::vector<char> done(operations.size(), 0);
  for (const int operation : order) {
    if (operation < 0 || operation >= static_cast<int>(operations.size()) || done[operation] ||
        !progress.is_ready(operation))
      throw InvalidArgument("order: operation " + std::to_string(operation) +
                            " is unknown, repeated or before its inputs");
    done[operation] = 1;
    progress.run(operation);
  }
  if (order.size() != operations.size())
    throw InvalidArgument("order: " + std::to_string(order.size()) + " of " + std::to_string(operations.size()) +
                          " operations are in the order");
  return progress.peak();
}

OrderResult order_operations(std::span<const Operation> operations, const OrderLimits& limits) {
  check_operations(operations);
  const OrderGraph graph(operations);
  const std::vector<char> separates = find_separators(graph);
  OrderResult result;
  result.is_optimal = true;
  std::vector<int> natural(operations.size());
  std::iota(natural.begin(), natural.end(), 0);
  result.natural_peak = peak_after(OrderProgress(graph), natural, nullptr);
  OrderProgress done(graph);
  for (std::size_t first = 0; first < operations.size();) {
    std::size_t last = first;
    while (last < operations.size() && !separates[last]) ++last;
    last = std::min(last + 1, operations.size());
    const std::span<const int> piece(natural.data() + first, last - first);
    std::vector<int> best(piece.begin(), piece.end());
    if (auto exact = exact_order(done, piece, limits.exact_states)) {
      best = std::move(*exact);
    } else {
      result.is_optimal = false;
      const std::vector<int> beam = beam_order(graph, done, piece, limits.beam_states);
      if (peak_after(done, beam, nullptr) < peak_after(done, best, nullptr)) best = beam;
    }
    result.peak = peak_after(done, best, &done);
    result.order.insert(result.order.end(), best.begin(), best.end());
    first = last;
  }
  return result;
}

}  // namespace plimsoll::internal
