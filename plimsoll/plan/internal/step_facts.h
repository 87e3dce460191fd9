// StepFacts: what is known about a step program's values before any limit is known.
//
//   const StepFacts facts(program);
//   facts.reads_of(value);        // the steps that read it, in order
//   facts.next_read(value, step)  // the first of them at or after a step
//
// Linear in the program, apart from looking through at most 64 dead values per value.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/plan/recompute.h"

namespace plimsoll::internal {

// Lists of numbers, one per row, in one array.
class PackedLists {
 public:
  PackedLists() = default;
  explicit PackedLists(const std::vector<std::vector<int>>& rows);
  std::span<const int> operator[](int row) const {
    return std::span(items_).subspan(begins_[row], begins_[row + 1] - begins_[row]);
  }

 private:
  std::vector<std::size_t> begins_ = {0};
  std::vector<int> items_;
};

inline constexpr int kNever = INT32_MAX;

struct StepFacts {
  explicit StepFacts(const StepProgram& program);

  int value_count() const { return static_cast<int>(program.values.size()); }
  int step_count() const { return static_cast<int>(program.steps.size()); }
  std::size_t bytes(int value) const { return program.values[value].bytes; }
  std::span<const int> reads_of(int value) const { return readers[value]; }
  int last_read(int value) const { return readers[value].empty() ? StepProgram::kNone : readers[value].back(); }
  bool makes_gradient(int value) const { return maker[value] >= 0 && program.steps[maker[value]].is_gradient; }
  int taken_over(int step, std::size_t write) const {  // By its write number `write`.
    const auto& taken = program.steps[step].takes_over;
    return taken.empty() ? StepProgram::kNone : taken[write];
  }

  const StepProgram& program;
  std::vector<int> maker;       // Step that writes it, or kNone.
  std::vector<int> last_held;   // Last step during which it occupies bytes when nothing is dropped; kNever if kept.
  std::vector<int> taken_by;    // Step that takes its bytes over, or kNone.
  std::vector<char> is_free;    // May be dropped and recomputed, as far as it and its maker are concerned.
  std::vector<int> until;       // Before this step all it is made from is there or can be made; last_held if not free.
  std::vector<int> stays_from;  // From this step on no schedule can do without it until its last reader.
  std::vector<std::uint64_t> time;      // Cost of the steps before each; one more for the end.
  std::vector<std::uint64_t> own_cost;  // Of its maker, and of the makers of what it took over.
  PackedLists readers;
  PackedLists parents, children;          // Read by its maker, and by those of what it took over; the reverse.
  std::vector<std::uint64_t> far_cost;    // own_cost and what is dead in its longest rest; not of gradients.
  PackedLists far_parents, far_children;  // Through what is dead then; free ones only.
  PackedLists ends;                       // Per step: values whose last_held it is.

 private:
  void find_lives();
  void find_free();
  void find_parents();
  void look_through_the_dead();
};

std::uint64_t bound_of(const StepFacts& facts, std::size_t limit);  // recompute_bound() of the program.

}  // namespace plimsoll::internal
