#include "plimsoll/model/data/csv_field.h"

#include <charconv>
#include <chrono>
#include <cmath>

namespace plimsoll::internal {
namespace {

// Takes a number of `least` to `most` digits from the front.
std::optional<int> take_digits(std::string_view& text, std::size_t least, std::size_t most) {
  std::size_t count = 0;
  int value = 0;
  while (count < most && count < text.size() && text[count] >= '0' && text[count] <= '9')
    value = value * 10 + (text[count++] - '0');
  if (count < least) return std::nullopt;
  text.remove_prefix(count);
  return value;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

// Days since 1970.
std::optional<double> take_day(std::string_view& text) {
  int parts[3];
  char between = 0;
  std::size_t digits_of_first = 0;
  for (int i = 0; i < 3; ++i) {
    const std::size_t before = text.size();
    const auto part = take_digits(text, 1, 4);
    if (!part) return std::nullopt;
    parts[i] = *part;
    if (i == 0) digits_of_first = before - text.size();
    if (i == 2) {
      if (digits_of_first != 4 && before - text.size() != 4) return std::nullopt;
      break;
    }
    if (text.empty()) return std::nullopt;
    if (i == 0) between = text.front();
    if ((between != '-' && between != '/' && between != '.') || !take(text, between)) return std::nullopt;
  }
  const bool year_first = digits_of_first == 4;
  if (!year_first && between == '-') return std::nullopt;
  const int year = year_first ? parts[0] : parts[2];
  const int month = year_first ? parts[1] : between == '.' ? parts[1] : parts[0];
  const int day = year_first ? parts[2] : between == '.' ? parts[0] : parts[1];
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  return static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
}

// Seconds of a day, which may be followed by the distance from UTC.
std::optional<double> take_time(std::string_view& text) {
  const auto hour = take_digits(text, 1, 2);
  if (!hour || *hour > 24 || !take(text, ':')) return std::nullopt;
  const auto minute = take_digits(text, 2, 2);
  if (!minute || *minute > 59) return std::nullopt;
  double seconds = *hour * 3600.0 + *minute * 60.0;
  if (take(text, ':')) {
    const auto second = take_digits(text, 2, 2);
    if (!second || *second > 60) return std::nullopt;
    seconds += *second;
    if (take(text, '.')) {
      double place = 0.1;
      while (const auto digit = take_digits(text, 1, 1)) {
        seconds += *digit * place;
        place /= 10;
      }
    }
  }
  take(text, ' ');
  if (text.empty() || take(text, 'Z')) return seconds;
  if (text == "UTC") {
    text = {};
    return seconds;
  }
  const double sign = text.front() == '-' ? 1 : -1;  // Local time ahead of UTC is an earlier moment.
  if (!take(text, '+') && !take(text, '-')) return std::nullopt;
  const auto hours = take_digits(text, 2, 2);
  take(text, ':');
  const auto minutes = text.empty() ? std::optional(0) : take_digits(text, 2, 2);
  if (!hours || !minutes) return std::nullopt;
  return seconds + sign * (*hours * 3600.0 + *minutes * 60.0);
}

}  // namespace

std::string_view trimmed_field(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_missing_field(std::string_view text) {
  return text.empty() || text == "NA" || text == "N/A" || text == "NaN" || text == "nan" || text == "null";
}

std::string shown_field(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, 40)) result += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > 40 ? result + "..." : result;
}

template <class T>
std::optional<T> number_in(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return T{1};
  if (text == "false" || text == "False" || text == "FALSE") return T{0};
  if (text.starts_with('+')) text.remove_prefix(1);
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}
template std::optional<float> number_in<float>(std::string_view);
template std::optional<double> number_in<double>(std::string_view);

std::optional<double> date_in(std::string_view text) {
  const auto day = take_day(text);
  if (!day) return std::nullopt;
  double seconds = *day * 86400;
  if (take(text, 'T') || take(text, ' ')) {
    const auto time = take_time(text);
    if (!time) return std::nullopt;
    seconds += *time;
  }
  return text.empty() ? std::optional(seconds) : std::nullopt;
}

}  // namespace plimsoll::internal
