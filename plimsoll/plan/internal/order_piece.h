// OrderGraph and orders of pieces of it: the searches behind order_operations().
//
//   OrderGraph graph(operations);
//   std::optional<std::vector<int>> best = exact_order(progress, piece, limit);    // nothing when there are too many
//   states std::vector<int> good = beam_order(graph, progress, piece, states);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plimsoll/plan/order.h"

namespace plimsoll::internal {

// Readers and distinct inputs of each operation.
struct OrderGraph {
  explicit OrderGraph(std::span<const Operation> operations);
  std::span<const Operation> operations;
  std::vector<std::vector<int>> inputs;
  std::vector<std::vector<int>> readers;
};

// What has been done of a piece: how many readers each output still has, what is live and what was the most.
class OrderProgress {
 public:
  explicit OrderProgress(const OrderGraph& graph);
  void run(int operation);
  bool is_ready(int operation) const { return waiting_[operation] == 0; }
  std::size_t live() const { return live_; }
  std::size_t peak() const { return peak_; }

 private:
  const OrderGraph* graph_;
  std::vector<int> waiting_;  // Inputs not made yet.
  std::vector<int> readers_left_;
  std::size_t live_ = 0;
  std::size_t peak_ = 0;
};

// The piece lists operations in natural order; `before` is the progress when all earlier pieces are done.
std::optional<std::vector<int>> exact_order(const OrderProgress& before, std::span<const int> piece,
                                            std::uint64_t most_states);
std::vector<int> beam_order(const OrderGraph& graph, const OrderProgress& before, std::span<const int> piece,
                            std::uint64_t states);

}  // namespace plimsoll::internal
