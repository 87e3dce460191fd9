#include "plimsoll/plan/internal/order_piece.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace plimsoll::internal {
namespace {

constexpr std::size_t kMostExact = 64;  // Operations of a piece: one bit each.

// A set of done operations of a piece and the best way to reach it.
struct State {
  std::size_t peak;
  std::uint64_t previous;
  int last;
};

std::vector<int> trace_back(const std::unordered_map<std::uint64_t, State>& states, std::uint64_t set) {
  std::vector<int> order;
  for (; set != 0; set = states.at(set).previous) order.push_back(states.at(set).last);
  std::reverse(order.begin(), order.end());
  return order;
}

std::uint64_t scatter(std::uint64_t x) {
  x = (x + 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
  return (x ^ (x >> 29)) * 0x94d049bb133111ebull;
}

struct Beam {
  OrderProgress progress;
  std::vector<int> ready;
  std::uint64_t hash = 0;
  int history = -1;  // Into a list of (operation, previous).
};

std::vector<int> now_ready(const OrderGraph& graph, const OrderProgress& progress, const std::vector<char>& in_piece,
                           int done) {
  std::vector<int> ready;
  for (const int reader : graph.readers[done])
    if (in_piece[reader] && progress.is_ready(reader)) ready.push_back(reader);
  return ready;
}

}  // namespace

OrderGraph::OrderGraph(std::span<const Operation> ops) : operations(ops), inputs(ops.size()), readers(ops.size()) {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    inputs[i] = ops[i].inputs;
    std::sort(inputs[i].begin(), inputs[i].end());
    inputs[i].erase(std::unique(inputs[i].begin(), inputs[i].end()), inputs[i].end());
    for (const int input : inputs[i]) readers[input].push_back(static_cast<int>(i));
  }
}

OrderProgress::OrderProgress(const OrderGraph& graph) : graph_(&graph) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    waiting_.push_back(static_cast<int>(graph.inputs[i].size()));
    readers_left_.push_back(static_cast<int>(graph.readers[i].size()) + (graph.operations[i].keep_output ? 1 : 0));
  }
}

void OrderProgress::run(int operation) {
  const Operation& op = graph_->operations[operation];
  live_ += op.output_bytes;
  peak_ = std::max(peak_, live_ + op.workspace_bytes);
  for (const int input : graph_->inputs[operation])
    if (--readers_left_[input] == 0) live_ -= graph_->operations[input].output_bytes;
  if (readers_left_[operation] == 0) live_ -= op.output_bytes;
  for (const int reader : graph_->readers[operation]) --waiting_[reader];
}

// Sets are settled in the order of the least peak that reaches them, so the first time the full set comes up is best.
std::optional<std::vector<int>> exact_order(const OrderProgress& before, std::span<const int> piece,
                                            std::uint64_t most_states) {
  if (piece.size() > kMostExact) return std::nullopt;
  const std::uint64_t full = piece.size() == 64 ? ~0ull : (1ull << piece.size()) - 1;
  std::unordered_map<std::uint64_t, State> states = {{0, {0, 0, -1}}};
  using Entry = std::tuple<std::size_t, int, std::uint64_t>;  // Peak, operations left, set.
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  queue.push({0, static_cast<int>(piece.size()), 0});
  std::unordered_set<std::uint64_t> settled;
  while (!queue.empty()) {
    const auto [peak, left, set] = queue.top();
    queue.pop();
    if (!settled.insert(set).second) continue;
    if (set == full) return trace_back(states, full);
    if (states.size() > most_states) return std::nullopt;
    OrderProgress here = before;
    for (const int operation : trace_back(states, set)) here.run(operation);
    for (std::size_t k = 0; k < piece.size(); ++k) {
      const std::uint64_t next = set | 1ull << k;
      if (next == set || !here.is_ready(piece[k]) || settled.contains(next)) continue;
      OrderProgress after = here;
      after.run(piece[k]);
      const std::size_t reached = std::max(peak, after.peak());
      const auto [found, is_new] = states.try_emplace(next, State{reached, set, piece[k]});
      if (!is_new && found->second.peak <= reached) continue;
      found->second = {reached, set, piece[k]};
      queue.push({reached, left - 1, next});
    }
  }
  return std::nullopt;
}

std::vector<int> beam_order(const OrderGraph& graph, const OrderProgress& before, std::span<const int> piece,
                            std::uint64_t states) {
  const std::size_t width = std::clamp<std::size_t>(states / (piece.size() * piece.size() + 1), 4, 64);
  std::vector<char> in_piece(graph.operations.size(), 0);
  for (const int operation : piece) in_piece[operation] = 1;
  std::vector<std::pair<int, int>> history;  // Operation and the entry before it.
  std::vector<Beam> beams = {{before, {}, 0, -1}};
  for (const int operation : piece)
    if (before.is_ready(operation)) beams[0].ready.push_back(operation);
  for (std::size_t step = 0; step < piece.size(); ++step) {
    std::vector<Beam> next;
    std::unordered_set<std::uint64_t> seen;
    for (const Beam& beam : beams)
      for (const int operation : beam.ready) {
        const std::uint64_t hash = beam.hash ^ scatter(static_cast<std::uint64_t>(operation));
        if (!seen.insert(hash).second) continue;
        Beam made{beam.progress, beam.ready, hash, static_cast<int>(history.size())};
        made.progress.run(operation);
        std::erase(made.ready, operation);
        const std::vector<int> woken = now_ready(graph, made.progress, in_piece, operation);
        made.ready.insert(made.ready.end(), woken.begin(), woken.end());
        history.emplace_back(operation, beam.history);
        next.push_back(std::move(made));
      }
    std::stable_sort(next.begin(), next.end(), [](const Beam& a, const Beam& b) {
      return std::pair(a.progress.peak(), a.progress.live()) < std::pair(b.progress.peak(), b.progress.live());
    });
    if (next.size() > width) next.erase(next.begin() + static_cast<std::ptrdiff_t>(width), next.end());
    beams = std::move(next);
  }
  std::vector<int> order;
  for (int h = beams[0].history; h >= 0; h = history[h].second) order.push_back(history[h].first);
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace plimsoll::internal
