// How `plimsoll plan` reports its result: a table for people, JSON for programs.
//
//   fmt::print("{}", plan_table(lifetimes, constraints, plan));
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "plimsoll/plan/lifetimes_csv.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll::internal {

std::string plan_table(const Lifetimes& lifetimes, const Constraints& constraints, const Plan& plan);
nlohmann::ordered_json plan_json(const Lifetimes& lifetimes, const Constraints& constraints, const Plan& plan);

// "10s", "500ms", "2min", "1.5": seconds. Throws InvalidArgument for anything else.
double parse_seconds(std::string_view text);

}  // namespace plimsoll::internal
