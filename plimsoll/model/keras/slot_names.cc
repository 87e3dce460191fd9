#include "plimsoll/model/keras/slot_names.h"

#include <span>
#include <utility>

namespace plimsoll::internal {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;  // Ours, theirs.

std::span<const Pair> names_of(const OptimizerOptions& options) {
  static constexpr Pair kSGD[] = {{"velocity", "momentum"}};
  static constexpr Pair kRMSprop[] = {{"mean_square", "rms"}, {"mean_gradient", "mg"}, {"momentum", "momentum"}};
  static constexpr Pair kAdagrad[] = {{"sum_of_squares", "accumulator"}};
  static constexpr Pair kAdadelta[] = {{"mean_square", "accum_grad"}, {"mean_square_update", "accum_var"}};
  static constexpr Pair kAdamax[] = {{"m", "m"}, {"u", "v"}};
  if (std::holds_alternative<SGDOptions>(options)) return kSGD;
  if (std::holds_alternative<RMSpropOptions>(options)) return kRMSprop;
  if (std::holds_alternative<AdagradOptions>(options)) return kAdagrad;
  if (std::holds_alternative<AdadeltaOptions>(options)) return kAdadelta;
  if (std::holds_alternative<AdamaxOptions>(options)) return kAdamax;
  return {};
}

}  // namespace

std::string slot_name_elsewhere(const OptimizerOptions& options, std::string_view ours) {
  for (const auto& [here, there] : names_of(options))
    if (here == ours) return std::string(there);
  return std::string(ours);
}

std::string slot_name_here(const OptimizerOptions& options, std::string_view theirs) {
  for (const auto& [here, there] : names_of(options))
    if (there == theirs) return std::string(here);
  return std::string(theirs);
}

}  // namespace plimsoll::internal
