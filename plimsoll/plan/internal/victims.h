// Victims: the values of a rehearsal, where they are, and which of them is evicted first.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "plimsoll/plan/internal/step_facts.h"

namespace plimsoll::internal {

// The assumed cost of recovering a value.
enum class Price {
  kOwn,          // Its maker and what is dead behind it.
  kNeighbours,   // And the groups of dropped values next to it.
  kAncestors,    // Its maker and everything that would have to run again now.
  kThroughDead,  // Its maker, and groups looked up through what is dead now.
  kDirect,       // Its maker, and groups of direct neighbours.
  kNothing,      // The same for all.
};

struct EvictionPolicy {
  Price price = Price::kNeighbours;
  int rest_quarters = 2;        // Exponent, in quarters, of the time that the value rests: 0, 1, 2 or 4.
  bool knows_future = true;     // Rest is the time to the next reader; otherwise that since the last.
  bool keeps_gradients = true;  // Until nothing else is left.
  bool robs_waiting = true;     // When nothing else is left, steps that wait lose their operands.
  bool in_order = true;         // What must run again for a step runs in the program's order, not depth first.
  double cap = 0;               // What a group may cost while something else is left; 0: anything.
  std::vector<double> weights;  // Prices are multiplied by these, one per value; none: by 1.
  double spill_bytes_per_cost = 0;
  double spill_discount = 1;     // Of the time of a load, in choices.
  std::uint64_t load_ahead = 0;  // A load is taken to start this long before its reader.
  std::uint64_t most_extra_cost = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t most_work = std::numeric_limits<std::uint64_t>::max();
};

class Victims {
 public:
  Victims(const StepFacts& facts, const EvictionPolicy& policy);

  bool is_there(int value) const { return there_[value]; }
  bool is_stored(int value) const { return stored_[value]; }
  bool is_dead(int value) const;  // Nobody reads it any more, or its holder released it.
  bool may_drop(int value);       // Now: it can be made again when it is read next.
  bool is_pinned(int value) const { return pins_[value] > 0; }
  int pins(int value) const { return pins_[value]; }
  void pin(int value) { ++pins_[value]; }
  void unpin(int value) {
    if (--pins_[value] == 0) rank_again(value);
  }

  // Somebody who waits will read it soon: it leaves only when nothing else is left.
  void want(int value) {
    if (++wanted_[value] == 1 && there_[value]) rank_again(value);
  }
  void unwant(int value) {
    if (--wanted_[value] == 0 && there_[value]) rank_again(value);
  }

  void arrive(int value);
  void leave(int value);         // Not wanted any more, or taken over.
  void note_dropped(int value);  // After leave: joins the group of dropped values around it.
  void forget_stored(int value) { stored_[value] = 0; }
  void touch(int value) { touched_[value] = now; }

  int pick();  // The value to evict next, or kNone.
  // As it will be when step `from` runs: whether it can be made again, and is worth less than `other` is now.
  bool may_drop_from(int value, int from);
  bool goes_before(int value, int other, int from);
  bool prefers_store(int value);  // Over dropping it.
  // Start moving a value of which nothing is known elsewhere, or bringing it back; gives the time to wait now.
  std::uint64_t store(int value);
  std::uint64_t load(int value);

  int at = 0;              // The step that runs.
  std::uint64_t now = 0;   // Cost so far, waiting included.
  std::uint64_t work = 0;  // Values looked at.

 private:
  // The least leaves first; ties by number.
  struct Rank {
    int level = 0;  // How often the cap must be doubled for it; gradients come after all others.
    double score = 0;
    int value = StepProgram::kNone;
    std::uint32_t version = 0;
    bool operator>(const Rank& other) const {
      if (level != other.level) return level > other.level;
      return score != other.score ? score > other.score : value > other.value;
    }
  };

  Rank rank(int value);
  void rank_again(int value);
  int pick_by_scan();
  int pick_by_heap();
  bool may_spill(int value) const { return policy_.spill_bytes_per_cost > 0 && facts_.program.values[value].may_spill; }
  int next_read(int value);
  double score(int value);
  double rest(int value);  // Infinite when it need not come back.
  double price_again(int value);
  double price_stored(int value) const;
  double own_price(int value) const;
  double neighbours(int value);
  double ancestors(int value);
  template <typename Visit>
  void visit_neighbours(int value, const Visit& visit);
  std::uint64_t transfer(int value) const;
  std::uint64_t use_link(std::uint64_t ready, std::uint64_t length);

  int root(int group);
  void look_at_group(int value, double& sum);
  void join(int value, int other);

  const StepFacts& facts_;
  const EvictionPolicy& policy_;
  std::vector<char> there_, stored_;
  std::vector<int> pins_, wanted_, position_, candidates_;
  std::vector<std::size_t> read_position_;
  std::vector<std::uint64_t> touched_;
  // With the future known scores mostly rise with time, so ranks from before are looked at first and renewed when they
  // come up. A value has one rank that counts, that of its version.
  std::vector<Rank> heap_;
  std::vector<std::uint32_t> version_;
  // Groups of dropped values that hang together.
  std::vector<int> group_of_, group_parent_;
  std::vector<double> group_cost_;
  std::vector<int> seen_groups_;
  std::vector<int> mark_, open_;
  int stamp_ = 0;
  std::uint64_t link_free_ = 0;
};

}  // namespace plimsoll::internal
