#include "plimsoll/graph/borrowed_variables.h"

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"

namespace plimsoll::internal {

void BorrowedNow::bring(const BorrowedVariables& from, ProgramContext& context, const ProgramTables::Step& step) {
  from.before_step();
  const ProgramTables& tables = context.tables;
  bool all_there = true;
  tables.visit_read_variables(step, [&](std::uint32_t variable, std::size_t) {
    all_there &= !from.is_borrowed[variable] || std::find(there_.begin(), there_.end(), variable) != there_.end();
  });
  if (all_there) return;
  there_.clear();
  std::size_t at = 0;
  tables.visit_read_variables(step, [&](std::uint32_t variable, std::size_t bytes) {
    if (!from.is_borrowed[variable]) return;
    PLIMSOLL_CHECK(at + bytes <= from.room.size());
    from.begin_fetch(variable, from.room.data() + at);
    context.set_here(tables.first_variable + variable, from.room.data() + at);
    there_.push_back(variable);
    at += round_up(bytes, kBorrowedAlignment);
  });
  from.wait();
}

}  // namespace plimsoll::internal
