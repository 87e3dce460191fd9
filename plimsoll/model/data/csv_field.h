// Fields of CSV files: what a text means.
//
//   trimmed(" 1.5 ") == "1.5"; is_missing("NA"); number_in<float>("1e3") == 1000; date_in("2024-03-01") == 1709251200
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plimsoll::internal {

std::string_view trimmed_field(std::string_view text);
bool is_missing_field(std::string_view text);    // Empty, NA, N/A, NaN, nan, null.
std::string shown_field(std::string_view text);  // For messages: at most 40 characters, printable.

// A finite number, or true and false. Empty for other texts.
template <class T>
std::optional<T> number_in(std::string_view text);

// Seconds since 1970, UTC, for 2024-03-01, 2024/03/01, 01.03.2024 (day first) or 03/01/2024 (month first), optionally
// with a time after a space or a T: 12:30, 12:30:15, 12:30:15.25, and Z or +01:00. Empty for other texts.
std::optional<double> date_in(std::string_view text);

}  // namespace plimsoll::internal
