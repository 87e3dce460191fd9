// parse_http_request(): parses the head of an HTTP/1 GET request from untrusted bytes.
//
//   const HttpParse parsed = parse_http_request("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9090\r\n\r\n");
//   parsed.status == 200; parsed.request.path == "/metrics"; parsed.request.host == "127.0.0.1:9090"
//
// Strict: lines end with CR LF, names are tokens, nothing is folded, a request has no body. A pure function that reads
// every byte at most twice, however the request is cut.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

struct HttpRequest {
  std::string method, path, query;  // The query is what follows "?"; nothing is decoded.
  std::string host, authorization;  // "" when they are missing.
};

struct HttpLimits {
  std::size_t line_bytes = 2048;   // Of the request line.
  std::size_t head_bytes = 16384;  // Of all lines together.
  std::size_t headers = 64;
};

struct HttpParse {
  int status = 0;  // 200: complete; 0: more bytes are needed; else the status to answer: 400, 413, 414, 431, 505.
  HttpRequest request;
};

HttpParse parse_http_request(std::string_view bytes, const HttpLimits& limits = {});

}  // namespace plimsoll::internal
