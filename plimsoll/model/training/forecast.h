// MemoryForecast: what training a model takes, known before it runs, to the byte.
//
//   MemoryForecast f = model.forecast({.batch_size = 64});
//   f.peak_bytes; f.by_category["activations"]; f.fits(32_MiB);
//   f.predicted_slowdown(32_MiB);                                // 1.2: within 32 MiB a step takes a fifth longer.
//   model.fit(data, {.budget = f.smallest_budget});              // Runs; with one byte less it is refused.
//   model.max_batch_size(256_MiB);                               // The largest batch that fits.
//   model.forecast({.batch_size = 64, .spill = "scratch"});      // When values may be stored there, too.
//
// Counted are the model's parameters, gradients, optimizer state, activations, workspaces and one batch (whether or not
// it shares bytes with the tensors it was cut from), in blocks of the allocator: multiples of 64 bytes. Of a dataset,
// forecast(dataset) and fit count what a pass holds beside its batch too: examples that wait in a shuffle or a
// prefetch, at most. Not counted are the caller's own tensors.
//
// A forecast makes the plans that training would use and runs nothing. It takes no tensor memory.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/graph/memory_plan.h"

namespace plimsoll {

struct ForecastOptions {
  std::size_t batch_size = 32;
  std::string spill = {};  // As that of FitOptions: the directory must be there, and nothing is written to it.
  // Of one process of a job: the one that takes most. `slices` 0: one for each.
  int ranks = 1;
  std::size_t slices = 0;
  bool shard_optimizer = false, shard_parameters = false;
  bool predict = false;  // Of one prediction of a batch instead of a step of training; needs no compile().
};

struct PLIMSOLL_API MemoryForecast {
  std::size_t peak_bytes = 0;                      // Without recomputing.
  std::map<std::string, std::size_t> by_category;  // At the peak; they add up to it.
  std::size_t smallest_budget = 0;                 // The gate of fit: at it training runs, below it is refused.
  std::size_t lower_bound_bytes = 0;               // No placement of the step's buffers, in its order, needs less.
  std::string largest_op;                          // The operation that makes the largest buffer of the step,
  std::size_t largest_op_bytes = 0;                // and what that takes.
  std::size_t floor_bytes = 0;     // No recomputing of the step, in its order, needs less; smallest_budget is above it.
  std::string floor_step;          // The operation that determines it.
  std::vector<BudgetPoint> front;  // Budgets worth choosing: from the peak to the smallest, each leaner and slower.

  bool fits(std::size_t bytes) const noexcept { return bytes >= smallest_budget; }
  // How many times as long as at the peak a step takes within this many bytes; infinity below smallest_budget. Never
  // rises with the bytes.
  double predicted_slowdown(std::size_t bytes) const noexcept;
  std::string to_string() const;  // A table for people.
  friend PLIMSOLL_API std::ostream& operator<<(std::ostream& out, const MemoryForecast& forecast);
};

}  // namespace plimsoll
