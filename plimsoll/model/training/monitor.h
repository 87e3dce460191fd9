// Monitor: the best value so far of one entry of the logs.
//
// Better is smaller, or larger when the name ends in acc, accuracy or auc. NaN is never the best. A name that does not
// exist is logged once.
#pragma once

#include <optional>
#include <string>

#include "plimsoll/model/training/logs.h"

namespace plimsoll::internal {

class Monitor {
 public:
  Monitor(const std::string& name, double min_delta);

  void begin();  // Starts over.
  // Empty when there is no such value; otherwise whether it is the best by at least the delta.
  std::optional<bool> improves(const Logs& logs);

 private:
  const std::string name_;
  const bool larger_;
  const double delta_;
  std::optional<double> best_;
  bool warned_ = false;
};

}  // namespace plimsoll::internal
