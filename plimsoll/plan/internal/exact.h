// ExactSearch: finds a plan within a capacity, or shows that there is none, by depth-first search.
//
//   SearchProblem problem(instance);
//   ExactSearch search(problem, {Key::kTotal, Key::kDuration, Key::kArea}, capacity);
//   if (search.run(node_limit, stop) == Outcome::kFound) use(search.offsets());
//
// Items are placed bottom up: each at the lowest offset above all placed neighbours, in rising (offset, rank). Every plan
// can be pushed down into that form, so the search is complete unless the instance has windows. It turns back when
//  - in some section what is not placed yet no longer fits above the lowest place where it could go on,
//  - an item that can no longer be placed where it stands cannot be lifted by a neighbour, or would pass the capacity,
//  - a placement leaves a hole that an unplaced item would have fitted in.
// Only sections and neighbours of the item placed are looked at; nothing is sorted anew. When no unplaced item spans a
// moment, the sides are solved on their own. A run is deterministic. Not thread safe; one object per thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/plan/internal/instance.h"
#include "plimsoll/plan/internal/preorder.h"
#include "plimsoll/plan/internal/search_problem.h"

namespace plimsoll::internal {

enum class Outcome {
  kFound,      // offsets() are a plan within the capacity.
  kExhausted,  // There is none.
  kStopped,    // Out of nodes or told to stop.
};

// Shakes the ranks: the first key of each item grows by a random part of up to `amount`. Seed 0 shakes nothing.
struct Noise {
  std::uint64_t seed = 0;
  double amount = 0;
};

class ExactSearch {
 public:
  // `capacity` in bytes. The problem must outlive the search.
  ExactSearch(const SearchProblem& problem, const Preorder& keys, std::size_t capacity, Noise noise = {});

  Outcome run(std::uint64_t node_limit, const std::atomic<bool>& stop);
  std::uint64_t nodes() const { return nodes_; }
  const std::vector<Units>& offsets() const { return offsets_; }  // After kFound.

 private:
  // A part of the time line that no unplaced item leaves, and the unplaced items in it by rank.
  struct Part {
    int first;
    int last;
    std::vector<int> items;
  };
  struct Candidate {
    Units offset;
    int rank;
    bool operator<(const Candidate& other) const {
      return offset != other.offset ? offset < other.offset : rank < other.rank;
    }
  };
  struct Undo {
    int item;  // ~item when it was placed, item when it was raised.
    Units offset;
  };

  Outcome solve(Part& part);
  Outcome search(const Part& part, Units floor, int floor_rank);
  Outcome descend(const Part& part, int item, int rank);
  Outcome split(const Part& part, std::span<const int> cuts);
  std::size_t push_candidates(const Part& part, Units floor, int floor_rank);
  bool place(const Part& part, int item, int rank);
  bool section_holds(int section, Units floor, int floor_rank);
  bool sections_hold(const Part& part, Units floor, int floor_rank);
  bool can_start(int item, Units limit, Units floor, int floor_rank) const;
  void undo(std::size_t mark);
  void rank_items(Part& part);

  const SearchProblem& problem_;
  const Preorder keys_;
  const Noise noise_;
  std::vector<Units> limit_;      // Largest offset of each item.
  std::vector<Units> lowest_;     // Of each unplaced item, above all placed neighbours; kPlaced otherwise.
  std::vector<Units> offsets_;
  std::vector<Units> room_;       // Per section: the capacity less the sizes of its unplaced items.
  std::vector<int> witness_;      // Per section: an item that could start low enough when last looked at.
  std::vector<int> spanning_;     // Per section: unplaced items that live in it and in the next.
  std::vector<int> rank_;
  std::vector<Candidate> candidates_;  // A stack of lists.
  std::vector<Undo> trail_;
  int failed_section_ = -1;  // Why the last placement failed, when a section was the reason.
  Units capacity_;
  std::uint64_t nodes_ = 0;
  std::uint64_t node_limit_ = 0;
  const std::atomic<bool>* stop_ = nullptr;
};

}  // namespace plimsoll::internal
