#include "plimsoll/observe/http/http_request.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

int status_of(const std::string& bytes) { return parse_http_request(bytes).status; }

TEST(HttpRequest, ReadsWhatTheServerNeeds) {
  const HttpParse parsed = parse_http_request(
      "GET /data?have=3 HTTP/1.1\r\nHOST:  127.0.0.1:80 \r\nAccept: */*\r\nauthorization: Bearer abc\r\n\r\n");
  EXPECT_EQ(parsed.status, 200);
  EXPECT_EQ(parsed.request.method, "GET");
  EXPECT_EQ(parsed.request.path, "/data");
  EXPECT_EQ(parsed.request.query, "have=3");
  EXPECT_EQ(parsed.request.host, "127.0.0.1:80");
  EXPECT_EQ(parsed.request.authorization, "Bearer abc");
}

TEST(HttpRequest, AsksForMoreUntilTheHeadIsComplete) {
  const std::string whole = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_EQ(status_of(whole.substr(0, size)), 0) << size;
  EXPECT_EQ(status_of(whole), 200);
  EXPECT_EQ(status_of(whole + "more"), 200);
}

TEST(HttpRequest, RefusesWhatIsNotARequest) {
  for (const char* bytes :
       {"\r\n", "GET /\r\n\r\n", "GET / HTTP/1.1\nHost: x\n\n", "GET  HTTP/1.1\r\nHost: x\r\n\r\n",
        "G T / HTTP/1.1\r\n\r\n", "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET / FTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET / HTTP/1.1\r\nHost a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\x01\r\n\r\n", "GET /\x80 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n"})
    EXPECT_EQ(status_of(bytes), 400) << bytes;
  EXPECT_EQ(status_of(std::string("GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n", 29)), 400);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: x\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n"), 200);
}

TEST(HttpRequest, RefusesBodies) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"), 413);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"), 413);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"), 200);
}

TEST(HttpRequest, HasLimits) {
  EXPECT_EQ(status_of("GET /" + std::string(5000, 'a')), 414);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nX: " + std::string(20000, 'a')), 431);
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 100; ++i) many += "A: b\r\n";
  EXPECT_EQ(status_of(many), 431);
}

}  // namespace
}  // namespace plimsoll
