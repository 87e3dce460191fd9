// Failures of the program: one line on standard error, and one document on standard output with --json.
//
//   plimsoll: trace "run.trace": no such file
//   {"error": {"kind": "not_found", "message": "trace ...", "smallest_sufficient_bytes": null}}
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll::internal {

struct Failure {
  int code = 1;      // The exit code.
  std::string kind;  // "usage", "out_of_memory", "not_found", "corruption", ...
  std::string message;
  std::string who = "plimsoll";                // Begins the line: "plimsoll train".
  std::optional<std::size_t> sufficient = {};  // A limit that would have been enough.
};

Failure failure_of(const std::exception& error);

// Prints it and returns its code.
int fail(const Failure& failure, bool json);

// What the user may have meant by `word`: the nearest of `words`, "" when none is near.
std::string nearest_to(const std::string& word, const std::vector<std::string>& words);

}  // namespace plimsoll::internal
