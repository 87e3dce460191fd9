#include "plimsoll/cli/program_failure.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/cli/print_document.h"
#include "plimsoll/distributed/unavailable.h"

namespace plimsoll::internal {
namespace {

// Letters to insert, remove or change to turn one into the other.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j)
      corner = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, corner + (a[i - 1] == b[j - 1] ? 0 : 1)}));
  }
  return row[b.size()];
}

template <class Kind>
bool is(const std::exception& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

// In the spelling of the program's options: "did you mean 10_MiB?" is C++.
std::string as_options_are_written(std::string message) {
  constexpr std::string_view kLiteral = "_MiB?";
  if (const std::size_t at = message.find(kLiteral); at != std::string::npos) message.erase(at, 1);
  return message;
}

}  // namespace

Failure failure_of(const std::exception& error) {
  Failure failure{.code = 1, .kind = "error", .message = as_options_are_written(error.what())};
  if (const auto* refused = dynamic_cast<const OutOfMemory*>(&error)) {
    failure.code = 3;
    failure.kind = "out_of_memory";
    failure.sufficient = refused->smallest_sufficient_limit();
  } else if (is<Unavailable>(error)) {
    failure.code = 75;  // EX_TEMPFAIL: try again, from the last checkpoint.
    failure.kind = "unavailable";
  } else if (is<InvalidArgument>(error)) {
    failure.kind = "invalid_argument";
  } else if (is<FailedPrecondition>(error)) {
    failure.kind = "failed_precondition";
  } else if (is<NotFound>(error)) {
    failure.kind = "not_found";
  } else if (is<Corruption>(error)) {
    failure.kind = "corruption";
  } else if (is<Unsupported>(error)) {
    failure.kind = "unsupported";
  }
  return failure;
}

int fail(const Failure& failure, bool json) {
  if (json) {
    const nlohmann::ordered_json sufficient =
        failure.sufficient ? nlohmann::ordered_json(*failure.sufficient) : nullptr;
    const nlohmann::ordered_json document = {
        {"error", {{"kind", failure.kind}, {"message", failure.message}, {"smallest_sufficient_bytes", sufficient}}}};
    print_document(document);
  }
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", failure.who.c_str(), failure.message.c_str());
  return failure.code;
}

std::string nearest_to(const std::string& word, const std::vector<std::string>& words) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 4) + 1;
  for (const std::string& other : words) {
    const bool begins = word.size() >= 4 && other.starts_with(word);  // Cut short.
    const std::size_t far = begins ? 1 : distance(word, other);
    if (far < least && far < other.size()) least = far, best = other;
  }
  return best;
}

}  // namespace plimsoll::internal
