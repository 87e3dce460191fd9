// ProgramVariant: one plan of a program, ready to run, with the contexts of calls under way.
//
// Thread safety: any thread may run it; each running call has a context and an extent of its own.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "plimsoll/graph/program.h"

namespace plimsoll::internal {

class ProgramVariant {
 public:
  explicit ProgramVariant(ProgramTables tables);
  ~ProgramVariant();
  ProgramVariant(const ProgramVariant&) = delete;
  ProgramVariant& operator=(const ProgramVariant&) = delete;

  // As Program's, without asking budgets before. What variables take is charged to call.own, if there is one.
  void run(const ProgramCall& call);
  void run_inside(std::span<const ConstTensorView> feeds, std::span<const TensorView> results, std::byte* extent);
  const ProgramTables& tables() const noexcept { return tables_; }
  void release_slots() noexcept;  // Those that are kept for the next run.

 private:
  struct Context;
  class Running;
  std::unique_ptr<Context> obtain_context();
  void give_back(std::unique_ptr<Context> context) noexcept;

  const ProgramTables tables_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Context>> spare_;  // Guarded by mutex_.
};

}  // namespace plimsoll::internal
