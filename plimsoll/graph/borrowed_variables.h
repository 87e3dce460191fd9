// BorrowedNow: the borrowed variables of a run (program.h, BorrowedVariables) that are in its room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plimsoll/graph/program.h"
#include "plimsoll/graph/program_context.h"

namespace plimsoll::internal {

constexpr std::size_t kBorrowedAlignment = 64;  // Of variables in the room for them.

class BorrowedNow {
 public:
  // Brings all that the step reads, unless all of it is there. Throws what the functions of `from` throw.
  void bring(const BorrowedVariables& from, ProgramContext& context, const ProgramTables::Step& step);

 private:
  std::vector<std::uint32_t> there_;
};

}  // namespace plimsoll::internal
