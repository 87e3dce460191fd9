// run_cli: the program run in the test's own process, with what it printed.
//
//   const CliResult result = run_cli({"plan", "in.csv", "--json"});
//   EXPECT_EQ(result.code, 0) << result.errors;
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/cli/command.h"

namespace plimsoll {

struct CliResult {
  int code = 0;
  std::string out, errors;
};

inline CliResult run_cli(const std::vector<std::string>& arguments) {
  std::vector<const char*> pointers = {"plimsoll"};
  for (const std::string& each : arguments) pointers.push_back(each.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  CliResult result;
  result.code = run_program(static_cast<int>(pointers.size()), pointers.data());
  result.out = testing::internal::GetCapturedStdout();
  result.errors = testing::internal::GetCapturedStderr();
  return result;
}

}  // namespace plimsoll
