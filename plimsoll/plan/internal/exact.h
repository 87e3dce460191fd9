// ExactSearch: finds a plan within a capacity, or shows that there is none, by depth-first search.
//
//   SearchProblem problem(instance);
//   ExactSearch search(problem, {.most_starters = 1}, capacity);
//   if (search.run(node_limit, stop) == Outcome::kFound) use(search.offsets());
//
// Each item is placed at the lowest offset above all placed neighbours; every plan can be pushed down into such places,
// so the search is complete unless the instance has windows. At a node it branches either on a section in which few
// items may come next and none of them anywhere else, or on the unplaced item that lies lowest of all. An item that was
// tried and failed sleeps in the branches after it until a neighbour placed below lifts it, so that no two branches
// look at the same plan. The search turns back when
//  - in some section none of the unplaced items can come next low enough for all of them to fit,
//  - an item would pass the capacity,
//  - a placement would leave a hole that an unplaced item fits in.
// Only neighbours of the item placed are updated and each section keeps a witness, so that a node costs about a
// microsecond for hundreds of items. When no unplaced item spans a moment, the sides are solved on their own.
// A run is deterministic. Not thread safe; one object per thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/plan/internal/instance.h"
#include "plimsoll/plan/internal/preorder.h"
#include "plimsoll/plan/internal/search_problem.h"
#include "plimsoll/plan/internal/stop_token.h"

namespace plimsoll::internal {

enum class Outcome {
  kFound,      // offsets() are a plan within the capacity.
  kExhausted,  // There is none.
  kStopped,    // Out of nodes or told to stop.
};

// How a search breaks ties. Different strategies find plans for different instances.
struct Strategy {
  Preorder keys = {Key::kTotal, Key::kDuration, Key::kArea};
  int most_starters =
      3;             // Branch on a section that leaves at most so many choices before branching on the lowest offset.
  double noise = 0;  // Each key but kTotal grows by a random part of up to this.
  std::uint64_t seed = 0;
};

class ExactSearch {
 public:
  // `capacity` in bytes. The problem must outlive the search.
  ExactSearch(const SearchProblem& problem, const Strategy& strategy, std::size_t capacity);

  Outcome run(std::uint64_t node_limit, const StopToken& stop);
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
    int item;
    enum { kPlacedItem, kRaised, kSlept } what;
    Units offset;
    bool was_asleep;
  };

  Outcome solve(Part& part);
  Outcome search(const Part& part);
  Outcome descend(const Part& part, int item);
  Outcome split(const Part& part, std::span<const int> cuts);
  bool push_candidates(const Part& part);
  bool push_starters(const Part& part);
  int count_starters(int section, int most);
  bool place(const Part& part, int item);
  void sleep(int item);
  bool section_holds(int section);
  void find_awake_floor(const Part& part);
  bool sections_hold(const Part& part);
  bool can_start(int item, Units limit);
  bool can_be_lifted(int item, Units limit);
  void undo(std::size_t mark);
  void rank_items(Part& part);

  const SearchProblem& problem_;
  const Strategy strategy_;
  std::vector<Units> limit_;   // Largest offset of each item.
  std::vector<Units> lowest_;  // Of each unplaced item, above all placed neighbours; kPlaced otherwise.
  std::vector<char> asleep_;   // Per unplaced item: placing it where it stands was tried above and failed.
  Units awake_floor_ = 0;      // No item can come to lie lower than this from here on.
  std::vector<Units> offsets_;
  std::vector<Units> room_;    // Per section: the capacity less the sizes of its unplaced items.
  std::vector<int> witness_;   // Per section: an item that could start low enough when last looked at.
  std::vector<int> lifter_;    // Per item: which of its neighbours could lift it when last looked at.
  std::vector<int> spanning_;  // Per section: unplaced items that live in it and in the next.
  std::vector<int> rank_;
  std::vector<Candidate> candidates_;  // A stack of lists.
  std::vector<Undo> trail_;
  int failed_section_ = -1;  // Why the last placement failed, when a section was the reason.
  Units capacity_;
  std::uint64_t nodes_ = 0;
  std::uint64_t node_limit_ = 0;
  const StopToken* stop_ = nullptr;
};

}  // namespace plimsoll::internal
