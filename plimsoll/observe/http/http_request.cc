#include "plimsoll/observe/http/http_request.h"

#include <algorithm>
#include <cctype>

namespace plimsoll::internal {
namespace {

bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || kMarks.find(letter) != std::string_view::npos;
  });
}

// Visible characters, and with `spaces` spaces and tabs.
bool is_visible(std::string_view text, bool spaces) {
  return std::all_of(text.begin(), text.end(), [&](char letter) {
    return (letter > ' ' && letter < 0x7f) || (spaces && (letter == ' ' || letter == '\t'));
  });
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return result;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

int read_request_line(std::string_view line, HttpRequest& request, bool& needs_host) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return 400;
  const std::string_view method = line.substr(0, first), target = line.substr(first + 1, last - first - 1),
                         version = line.substr(last + 1);
  if (!is_token(method) || !target.starts_with('/') || !is_visible(target, false)) return 400;
  if (!version.starts_with("HTTP/")) return 400;
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return 505;
  needs_host = version == "HTTP/1.1";
  const std::size_t mark = std::min(target.find('?'), target.size());
  request.method = method;
  request.path = target.substr(0, mark);
  request.query = target.substr(std::min(mark + 1, target.size()));
  return 200;
}

int read_header(std::string_view line, HttpRequest& request, bool& has_host) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return 400;
  const std::string name = lower(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!is_visible(value, true)) return 400;
  if (name == "host") {
    if (has_host) return 400;
    has_host = true;
    request.host = value;
  } else if (name == "authorization") {
    if (!request.authorization.empty()) return 400;
    request.authorization = value;
  } else if (name == "transfer-encoding") {
    return 413;
  } else if (name == "content-length" && value != "0") {
    return 413;
  }
  return 200;
}

}  // namespace

HttpParse parse_http_request(std::string_view bytes, const HttpLimits& limits) {
  HttpParse parsed;
  bool needs_host = false, has_host = false;
  std::size_t at = 0;
  for (std::size_t number = 0;; ++number) {
    const std::size_t end = bytes.find('\n', at);
    const std::size_t length = std::min(end, bytes.size()) - at;
    if (number == 0 && length > limits.line_bytes) return {.status = 414};
    if (at + length > limits.head_bytes || number > limits.headers + 1) return {.status = 431};
    if (end == std::string_view::npos) return {};
    if (length == 0 || bytes[end - 1] != '\r') return {.status = 400};
    const std::string_view line = bytes.substr(at, length - 1);
    at = end + 1;
    if (line.empty() && number > 0) break;
    const int status =
        number == 0 ? read_request_line(line, parsed.request, needs_host) : read_header(line, parsed.request, has_host);
    if (status != 200) return {.status = status};
  }
  if (needs_host && !has_host) return {.status = 400};
  parsed.status = 200;
  return parsed;
}

}  // namespace plimsoll::internal
