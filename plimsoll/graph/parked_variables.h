// ParkedVariables: handles, in one run of a program, the variables that are in a spill file between their uses.
//
//   ParkedVariables parked;
//   parked.share(tables, call.variables, *call.spill);   // before variables are locked
//   parked.obtain(tables, call.variables, *call.spill);  // afterwards: everything that may fail before the first step
//   parked.load(3, memory);                              // of the third, and store(), as the program's transfers say
//   parked.commit(tables);                               // the stored bytes become their values
//   parked.release();                                    // however the run ended
//
// Each variable that the program changes has two slots: one with its bytes, which stays unchanged until commit(), and
// one that receives the new bytes. Thread safety: one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "plimsoll/graph/program_tables.h"
#include "plimsoll/memory/spill/spill_file.h"
#include "plimsoll/ops/variable.h"
#include "plimsoll/tensor/parked.h"

namespace plimsoll::internal {

class ParkedVariables {
 public:
  // Takes references, and parks those that are only read.
  void share(const ProgramTables& tables, std::span<const Variable> variables, SpillFile& file);
  // Parks those that are changed, which the caller has locked, reserves their second slots and locks the slots that are
  // read. Throws what SpillFile throws, and OutOfMemory for one that others hold and that must be copied; then no
  // variable has changed.
  void obtain(const ProgramTables& tables, std::span<const Variable> variables, SpillFile& file);

  void load(std::size_t number, std::span<std::byte> to);
  void wait_for_load(std::size_t number);
  void store(std::size_t number, std::span<const std::byte> from);
  void wait_for_store(std::size_t number) { uses_[number].next->slot.wait(); }

  void commit(const ProgramTables& tables) noexcept;
  void release() noexcept;        // Ends all transfers; slots to write to are kept for the next run.
  void release_slots() noexcept;  // Frees those slots, too.

 private:
  struct Use {
    StorageRef storage;
    std::unique_lock<std::mutex> lock;         // Of its bytes, when they are only read.
    std::unique_ptr<ParkedBytes> next, spare;  // What to write to, now and in the next run.
    ParkedBytes* loading = nullptr;
  };
  std::vector<Use> uses_;  // Of each of tables.parked.
};

}  // namespace plimsoll::internal
