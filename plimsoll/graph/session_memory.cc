#include <fmt/format.h>

#include <ostream>

#include "plimsoll/base/bytes.h"
#include "plimsoll/graph/session.h"

namespace plimsoll {

std::string SessionMemory::to_string() const {
  std::string text = fmt::format("planned peak {} ({} bytes), lower bound {} ({} bytes)\nvariables {} ({} bytes)\n",
                                 format_bytes(peak_bytes), peak_bytes, format_bytes(lower_bound_bytes),
                                 lower_bound_bytes, format_bytes(variable_bytes), variable_bytes);
  text += format_front(front);
  for (const auto& [name, bytes] : variables) text += fmt::format("  {:<40} {:>12}\n", name, bytes);
  return text + fmt::format("{} plans kept, {} of bookkeeping\n", plans, format_bytes(plan_bytes));
}

std::ostream& operator<<(std::ostream& out, const SessionMemory& memory) { return out << memory.to_string(); }

}  // namespace plimsoll
