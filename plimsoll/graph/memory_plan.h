// MemoryPlan: what a run of a graph or function needs, known before it runs.
//
//   MemoryPlan plan = f.memory_plan(x);
//   plan.peak_bytes;              // what a call takes at most: its extent and its results, to the byte
//   plan.lower_bound_bytes;       // no placement of these buffers, in this order, needs less
//   plan.smallest_bytes;          // what it can do with by computing values again, within {.budget = ...}
//   plan.to_csv();                // as `plimsoll plan` reads it: id,lower,upper,size,...,offset
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/label.h"

namespace plimsoll {

struct PlannedBuffer {
  struct Stage {
    std::int64_t first = 0;
    Category category = Category::kActivations;
  };
  std::string name;  // The operation that makes it, numbered by its place in the order.
  std::size_t bytes = 0;
  std::size_t offset = 0;  // In the extent; of results 0: they have memory of their own.
  std::int64_t first = 0;  // The step that makes it.
  std::int64_t end = 0;    // The step after the last that reads it.
  bool is_result = false;
  bool is_scratch = false;
  Category category = Category::kActivations;
  std::vector<Stage> stages;  // What lies there in turn, when operations take over each other's bytes.

  Category category_at(std::int64_t step) const {
    Category at = category;
    for (const Stage& stage : stages)
      if (stage.first <= step) at = stage.category;
    return at;
  }
};

// A budget that a run fits in, and what it costs there.
struct BudgetPoint {
  std::size_t bytes = 0;  // Of blocks: the extent and the results.
  double slowdown = 1;    // Predicted: the cost of all steps, repeated ones included, over that of each one once.
};

std::string format_front(const std::vector<BudgetPoint>& front);  // Lines for people; none for an empty one.

struct PLIMSOLL_API MemoryPlan {
  std::size_t peak_bytes = 0;
  std::size_t lower_bound_bytes = 0;
  std::size_t extent_bytes = 0;  // Of the peak: one block that all buffers inside lie in.
  std::size_t result_bytes = 0;  // Of the peak: what is handed out.
  std::vector<PlannedBuffer> buffers;
  std::vector<std::string> order;  // Operations, in the order they run.
  // Runs below the peak, by computing values again where a budget asks for it: filled in where a session or function is
  // asked for its plan.
  std::size_t smallest_bytes = 0;  // The least that a run can do with.
  std::size_t floor_bytes = 0;     // No way to run these steps in this order takes less.
  std::string floor_step;          // The operation that makes it so, with its scope.
  std::vector<BudgetPoint> front;  // The natural run first, each leaner and slower than the one before.

  // The extent by what lies in it at the step where most is alive; the rest of it counts as workspace.
  std::array<std::size_t, kCategories> extent_by_category() const;
  std::string to_csv() const;
  std::string to_string() const;  // For people: the order, what lies where, peak and bound.
};

}  // namespace plimsoll
