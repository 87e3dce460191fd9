#include "plimsoll/model/training/monitor.h"

#include <fmt/format.h>

#include <cmath>

#include "plimsoll/base/log.h"

namespace plimsoll::internal {

Monitor::Monitor(const std::string& name, double min_delta)
    : name_(name),
      larger_(name.ends_with("acc") || name.ends_with("accuracy") || name.ends_with("auc")),
      delta_(std::abs(min_delta)) {}

void Monitor::begin() {
  best_.reset();
  warned_ = false;
}

std::optional<bool> Monitor::improves(const Logs& logs) {
  const float* value = logs.find(name_);
  if (value == nullptr) {
    if (!warned_)
      log_message(LogLevel::warning, fmt::format("callback: \"{}\" is not among the metrics; it is ignored", name_));
    warned_ = true;
    return std::nullopt;
  }
  if (std::isnan(*value)) return false;  // Never the best.
  const bool better = !best_ || (larger_ ? *value - delta_ > *best_ : *value + delta_ < *best_);
  if (better) best_ = *value;
  return better;
}

}  // namespace plimsoll::internal
