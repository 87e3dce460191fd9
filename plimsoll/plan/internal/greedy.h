// Greedy placement: items in a fixed order, each in a hole between those placed before it.
//
//   Neighbours neighbours(instance);                                  // who lives at the same time as whom
//   std::vector<Units> offsets = greedy_fit(instance, neighbours, order, Fit::kBest);
//
// Cost: O(pairs log) for the neighbours of each item; building the lists is the larger part for few orders.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/plan/internal/instance.h"

namespace plimsoll::internal {

// For each item the others that live in one of its sections.
class Neighbours {
 public:
  explicit Neighbours(const Instance& instance);
  std::span<const int> of(int item) const { return {all_.data() + begin_[item], all_.data() + begin_[item + 1]}; }

  // How many entries the lists would have, found without building them; gaps not considered.
  static std::uint64_t count(const Instance& instance);

 private:
  std::vector<std::size_t> begin_;
  std::vector<int> all_;
};

enum class Fit { kFirst, kBest };  // The lowest hole, or the tightest one.

std::vector<Units> greedy_fit(const Instance& instance, const Neighbours& neighbours, std::span<const int> order,
                              Fit fit);

// By breadth: sections from the busiest to the least busy, in each the largest items first.
std::vector<int> breadth_order(const Instance& instance);

}  // namespace plimsoll::internal
