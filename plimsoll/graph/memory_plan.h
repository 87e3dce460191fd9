// MemoryPlan: the memory that a run of a graph or function needs, known before it runs.
//
//   MemoryPlan plan = f.memory_plan(x);
//   plan.peak_bytes;              // the peak of a call: its extent and its results, to the byte
//   plan.lower_bound_bytes;       // no placement of these buffers, in this order, needs less
//   plan.smallest_bytes;          // the smallest budget it can run in by recomputing values
//   plan.to_csv();                // in the format that `plimsoll plan` reads: id,lower,upper,size,...,offset
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
  std::string name;  // The operation that makes it, numbered by its position in the order.
  std::size_t bytes = 0;
  std::size_t offset = 0;  // In the extent; 0 for results, which have their own memory.
  std::int64_t first = 0;  // The step that makes it.
  std::int64_t end = 0;    // The step after the last that reads it.
  bool is_result = false;
  bool is_scratch = false;
  Category category = Category::kActivations;
  std::vector<Stage> stages;  // What is there in turn, when operations reuse each other's bytes.

  Category category_at(std::int64_t step) const {
    Category at = category;
    for (const Stage& stage : stages)
      if (stage.first <= step) at = stage.category;
    return at;
  }
};

// A budget that a run fits in, and its cost.
struct BudgetPoint {
  std::size_t bytes = 0;  // Of blocks: the extent and the results.
  double slowdown = 1;    // Predicted: the cost of all steps, repeats included, over that of each once.
};

std::string format_front(const std::vector<BudgetPoint>& front);  // Lines for people; empty for an empty front.

struct PLIMSOLL_API MemoryPlan {
  std::size_t peak_bytes = 0;
  std::size_t lower_bound_bytes = 0;
  std::size_t extent_bytes = 0;  // Part of the peak: one block that holds all buffers inside.
  std::size_t result_bytes = 0;  // Part of the peak: what is returned.
  std::vector<PlannedBuffer> buffers;
  std::vector<std::string> order;  // Operations, in the order they run.
  // Runs below the peak, by recomputing values when a budget requires it: filled in by sessions and functions.
  std::size_t smallest_bytes = 0;  // The smallest that a run can do with.
  std::size_t floor_bytes = 0;     // No way to run these steps in this order needs less.
  std::string floor_step;          // The operation that determines it, with its scope.
  std::vector<BudgetPoint> front;  // The natural run first, each smaller and slower than the one before.

  // The extent by category at the step where most is live; the rest of it counts as workspace.
  std::array<std::size_t, kCategories> extent_by_category() const;
  std::string to_csv() const;
  std::string to_string() const;  // For people: the order, the layout, peak and bound.
};

}  // namespace plimsoll
