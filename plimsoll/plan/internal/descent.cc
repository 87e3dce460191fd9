#include "plimsoll/plan/internal/descent.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <numeric>
#include <queue>

#include "plimsoll/plan/internal/skyline.h"

namespace plimsoll::internal {
namespace {

std::vector<Units> queue_descent(const Instance& instance, std::span<const int> order) {
  Skyline skyline(instance.sections);
  std::vector<Units> offsets(instance.items.size(), 0);
  struct Waiting {
    Units offset;  // Where it could lie when last looked at; it can only have risen since.
    int rank;
    bool operator<(const Waiting& other) const {
      return offset != other.offset ? offset > other.offset : rank > other.rank;
    }
  };
  std::vector<Waiting> all;
  all.reserve(order.size());
  for (int rank = 0; rank < static_cast<int>(order.size()); ++rank) all.push_back({0, rank});
  std::priority_queue<Waiting> queue(std::less<Waiting>(), std::move(all));
  while (!queue.empty()) {
    const Waiting next = queue.top();
    queue.pop();
    const int index = order[next.rank];
    const Item& item = instance.items[index];
    const Units offset = skyline.lowest(instance, item);
    if (offset > next.offset) {
      queue.push({offset, next.rank});
      continue;
    }
    offsets[index] = offset;
    skyline.place(instance, item, offset);
  }
  return offsets;
}

// The unplaced items by their first section, to find the best ranked one inside a range of sections.
class Waiting {
 public:
  Waiting(const Instance& instance, std::span<const int> order) : begin_(instance.sections + 1, 0) {
    const std::size_t n = order.size();
    for (const int i : order) ++begin_[instance.items[i].first + 1];
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    leaves_ = std::bit_ceil(std::max<std::size_t>(n, 1));
    nodes_.assign(2 * leaves_, Node{});
    std::vector<int> next(begin_.begin(), begin_.end() - 1);
    for (int rank = 0; rank < static_cast<int>(n); ++rank) {
      const Item& item = instance.items[order[rank]];
      nodes_[leaves_ + next[item.first]++] = {rank, item.last};
    }
    for (std::size_t node = leaves_ - 1; node > 0; --node) nodes_[node] = join(nodes_[2 * node], nodes_[2 * node + 1]);
  }

  // The leaf of the best ranked item that lives within [first, last), or -1.
  int best(int first, int last) {
    found_ = {};
    leaf_ = -1;
    look(1, 0, static_cast<int>(leaves_), begin_[first], begin_[last], last);
    return leaf_;
  }
  int rank() const { return found_.rank; }

  void remove(int leaf) {
    std::size_t node = leaves_ + leaf;
    nodes_[node] = Node{};
    while (node /= 2) nodes_[node] = join(nodes_[2 * node], nodes_[2 * node + 1]);
  }

 private:
  struct Node {
    int rank = std::numeric_limits<int>::max();  // Least below.
    int last = std::numeric_limits<int>::max();  // Least below.
  };
  static Node join(const Node& a, const Node& b) { return {std::min(a.rank, b.rank), std::min(a.last, b.last)}; }

  void look(std::size_t node, int low, int high, int from, int to, int last) {
    if (high <= from || to <= low || nodes_[node].last > last || nodes_[node].rank >= found_.rank) return;
    if (high - low == 1) {
      found_ = nodes_[node];
      leaf_ = low;
      return;
    }
    const int middle = (low + high) / 2;
    const bool right_first = nodes_[2 * node + 1].rank < nodes_[2 * node].rank;
    if (right_first) look(2 * node + 1, middle, high, from, to, last);
    look(2 * node, low, middle, from, to, last);
    if (!right_first) look(2 * node + 1, middle, high, from, to, last);
  }

  std::vector<int> begin_;  // Of the leaves of each first section.
  std::size_t leaves_;
  std::vector<Node> nodes_;
  Node found_;
  int leaf_ = -1;
};

// The skyline as flat pieces; the lowest one is filled or raised to its lower neighbour.
class Terraces {
 public:
  explicit Terraces(int sections) { put(0, sections, 0); }

  struct Terrace {
    int first;
    int last;
    Units height;
  };

  Terrace lowest() {
    for (;; heap_.pop()) {
      const auto [height, first] = heap_.top();
      const auto found = all_.find(first);
      if (found != all_.end() && found->second.height == height) return found->second;
    }
  }

  // Raises [first, last), which lies within the terrace, to `height`.
  void raise(const Terrace& terrace, int first, int last, Units height) {
    all_.erase(terrace.first);
    if (terrace.first < first) put(terrace.first, first, terrace.height);
    if (last < terrace.last) put(last, terrace.last, terrace.height);
    merge(first, last, height);
  }

  // False when the terrace is all there is.
  bool level(const Terrace& terrace) {
    const auto here = all_.find(terrace.first);
    Units height = std::numeric_limits<Units>::max();
    if (here != all_.begin()) height = std::prev(here)->second.height;
    if (std::next(here) != all_.end()) height = std::min(height, std::next(here)->second.height);
    if (height == std::numeric_limits<Units>::max()) return false;
    all_.erase(here);
    merge(terrace.first, terrace.last, height);
    return true;
  }

 private:
  void put(int first, int last, Units height) {
    all_[first] = {first, last, height};
    heap_.push({height, first});
  }

  // Adds a terrace, joined with neighbours of the same height.
  void merge(int first, int last, Units height) {
    auto right = all_.lower_bound(first);
    if (right != all_.end() && right->second.height == height) {
      last = right->second.last;
      right = all_.erase(right);
    }
    if (right != all_.begin())
      if (const auto left = std::prev(right); left->second.height == height) {
        first = left->second.first;
        all_.erase(left);
      }
    put(first, last, height);
  }

  std::map<int, Terrace> all_;
  std::priority_queue<std::pair<Units, int>, std::vector<std::pair<Units, int>>, std::greater<>> heap_;
};

std::vector<Units> terrace_descent(const Instance& instance, std::span<const int> order) {
  std::vector<Units> offsets(instance.items.size(), 0);
  Waiting waiting(instance, order);
  Terraces terraces(instance.sections);
  for (std::size_t placed = 0; placed < order.size();) {
    const Terraces::Terrace terrace = terraces.lowest();
    const int leaf = waiting.best(terrace.first, terrace.last);
    if (leaf < 0) {
      if (!terraces.level(terrace)) break;
      continue;
    }
    const int index = order[waiting.rank()];
    const Item& item = instance.items[index];
    offsets[index] = (terrace.height + item.alignment - 1) / item.alignment * item.alignment;
    terraces.raise(terrace, item.first, item.last, offsets[index] + item.size);
    waiting.remove(leaf);
    ++placed;
  }
  return offsets;
}

}  // namespace

std::vector<Units> skyline_descent(const Instance& instance, std::span<const int> order) {
  return instance.is_simple ? terrace_descent(instance, order) : queue_descent(instance, order);
}

}  // namespace plimsoll::internal
