// Parses any bytes, whole and split, and checks what is accepted.
#include "plimsoll/observe/http/http_request.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const plimsoll::HttpParse whole = plimsoll::parse_http_request(bytes);
  const auto clean = [](std::string_view text) {
    for (const char letter : text)
      if ((letter < ' ' && letter != '\t') || letter == 0x7f) __builtin_trap();
  };
  if (whole.status == 200) {
    if (!whole.request.path.starts_with('/') || whole.request.method.empty()) __builtin_trap();
    for (const std::string* text : {&whole.request.method, &whole.request.path, &whole.request.query,
                                    &whole.request.host, &whole.request.authorization})
      clean(*text);
  }
  // A prefix is incomplete, or gets the same answer as the whole.
  const plimsoll::HttpParse half = plimsoll::parse_http_request(bytes.substr(0, size / 2));
  if (half.status != 0 && half.status != whole.status) __builtin_trap();
  if (whole.status == 0 && size > plimsoll::HttpLimits().head_bytes) __builtin_trap();
  return 0;
}
