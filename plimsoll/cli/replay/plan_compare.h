// The differences between two plans, for people and for checks in a build.
//
//   PlanDifference difference = compare_plans(old_lifetimes, new_lifetimes);
//   difference.new_peak > difference.old_peak ...
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plimsoll/plan/lifetimes_csv.h"

namespace plimsoll::internal {

struct PlanDifference {
  std::size_t old_peak = 0;
  std::size_t new_peak = 0;
  std::vector<std::string> added;    // Ids, in the order of the newer plan.
  std::vector<std::string> removed;  // Ids, in the order of the older plan.
  std::vector<std::string> resized;
  std::vector<std::string> retimed;  // Lifetime or gaps differ.
  std::vector<std::string> moved;    // Same size and lifetime, different offset.
  bool same_instance = false;
};

// Both must have offsets: throws InvalidArgument otherwise. Buffers are the same when their ids are.
PlanDifference compare_plans(const Lifetimes& older, const Lifetimes& newer);

std::string difference_table(const PlanDifference& difference);
nlohmann::ordered_json difference_json(const PlanDifference& difference);

}  // namespace plimsoll::internal
