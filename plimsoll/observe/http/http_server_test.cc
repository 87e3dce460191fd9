#include "plimsoll/observe/http/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Client {
 public:
  explicit Client(std::uint16_t port) : file_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    is_connected_ = connect(file_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Client() { close(file_); }
  Client(Client&& other) noexcept : file_(std::exchange(other.file_, -1)), is_connected_(other.is_connected_) {}

  bool is_connected() const { return is_connected_; }
  void say(const std::string& text) { static_cast<void>(send(file_, text.data(), text.size(), MSG_NOSIGNAL)); }
  // Until the server closes or nothing comes for `ms`.
  std::string hear(int ms = 10000) {
    std::string all;
    char piece[65536];
    for (;;) {
      pollfd wait{file_, POLLIN, 0};
      if (poll(&wait, 1, ms) <= 0) return all + "(silence)";
      const ssize_t count = recv(file_, piece, sizeof(piece), 0);
      if (count <= 0) return all;
      all.append(piece, static_cast<std::size_t>(count));
    }
  }

 private:
  int file_;
  bool is_connected_ = false;
};

class Running {
 public:
  explicit Running(HttpOptions options = {})
      : server_(options,
                [](const HttpRequest& request) -> HttpResponse {
                  if (request.path == "/big") return {.body = std::make_shared<const std::string>(1 << 24, 'x')};
                  if (request.path == "/throws") throw Error("a handler's error");
                  if (request.path != "/") return {.status = 404};
                  return {.body = std::make_shared<const std::string>("hello"), .headers = {{"ETag", "7"}}};
                }),
        thread_([this] { server_.run(10); }) {}
  ~Running() {
    server_.stop();
    thread_.join();
  }
  std::uint16_t port() const { return server_.port(); }
  std::string host() const { return "127.0.0.1:" + std::to_string(port()); }
  std::string ask(const std::string& path, const std::string& method = "GET", std::string host = "") {
    if (host.empty()) host = this->host();
    Client client(port());
    client.say(method + " " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    return client.hear();
  }

 private:
  HttpServer server_;
  std::thread thread_;
};

TEST(HttpServer, AnswersAndCloses) {
  Running server;
  const std::string said = server.ask("/");
  EXPECT_THAT(said, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(said, HasSubstr("Content-Length: 5\r\n"));
  EXPECT_THAT(said, HasSubstr("ETag: 7\r\n"));
  EXPECT_THAT(said, ::testing::EndsWith("\r\n\r\nhello"));
  EXPECT_THAT(server.ask("/big"), ::testing::SizeIs(::testing::Gt(1u << 24)));
  EXPECT_THAT(server.ask("/throws"), HasSubstr("a handler's error"));
}

TEST(HttpServer, RefusesOtherMethodsHostsAndPaths) {
  Running server;
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "CONNECT"})
    EXPECT_THAT(server.ask("/", method), StartsWith("HTTP/1.1 405 ")) << method;
  const std::string port = std::to_string(server.port());
  for (const std::string& host :
       std::vector<std::string>{"evil.example", "evil.example:" + port, "127.0.0.1", "localhost.evil.example:" + port,
                                "127.0.0.1:1", "[::1]:" + port})
    EXPECT_THAT(server.ask("/", "GET", host), StartsWith("HTTP/1.1 403 ")) << host;
  EXPECT_THAT(server.ask("/", "GET", "localhost:" + port), StartsWith("HTTP/1.1 200 "));
  for (const char* path : {"/../etc/passwd", "/%2e%2e/etc/passwd", "//etc/passwd", "/..\\..\\x", "/./"})
    EXPECT_THAT(server.ask(path), StartsWith("HTTP/1.1 404 ")) << path;
  EXPECT_THAT(server.ask("../../etc/passwd"), StartsWith("HTTP/1.1 400 "));
}

TEST(HttpServer, ClosesThoseWhoAreSlow) {
  Running server({.request_ms = 150, .answer_ms = 150});
  Client slow(server.port()), lazy(server.port());
  slow.say("GET / HTTP/1.1\r\nHo");
  lazy.say("GET /big HTTP/1.1\r\nHost: " + server.host() + "\r\n\r\n");  // And does not read the answer.
  EXPECT_EQ(slow.hear(), "");
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_THAT(lazy.hear().size(), ::testing::Lt(1u << 24));
  EXPECT_THAT(server.ask("/"), StartsWith("HTTP/1.1 200 "));
}

TEST(HttpServer, ServesBesideAThousandConnections) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4096);
  setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < 1200) GTEST_SKIP() << "only " << files.rlim_cur << " files may be open; this needs 1200";
  Running server({.connections = 32, .request_ms = 60000});
  std::vector<Client> idle;
  for (int i = 0; i < 1000; ++i) {
    idle.emplace_back(server.port());
    ASSERT_TRUE(idle.back().is_connected());
    idle.back().say("GET /");
    if (i % 100 == 0) {
      EXPECT_THAT(server.ask("/"), StartsWith("HTTP/1.1 200 ")) << i;
    }
  }
  EXPECT_THAT(server.ask("/"), StartsWith("HTTP/1.1 200 "));
}

TEST(HttpServer, RefusesBrokenAndHugeRequests) {
  Running server;
  const auto ask = [&](const std::string& bytes) {
    Client client(server.port());
    client.say(bytes);
    return client.hear().substr(0, 12);
  };
  EXPECT_EQ(ask("\x16\x03\x01 hello\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(ask("GET /" + std::string(100'000, 'a')), "HTTP/1.1 414");
  EXPECT_EQ(ask("GET / HTTP/1.1\r\nA: " + std::string(100'000, 'a')), "HTTP/1.1 431");
}

TEST(HttpServer, AnswersTheFirstOfSeveralRequestsAndCloses) {
  Running server;
  Client client(server.port());
  const std::string one = "GET / HTTP/1.1\r\nHost: " + server.host() + "\r\n\r\n";
  client.say(one + "GET /throws HTTP/1.1\r\nHost: " + server.host() + "\r\n\r\n" + one);
  const std::string said = client.hear();
  EXPECT_THAT(said, ::testing::EndsWith("\r\n\r\nhello"));
  EXPECT_EQ(said.find("HTTP/1.1", 1), std::string::npos);
  EXPECT_THAT(said, HasSubstr("Connection: close\r\n"));
}

TEST(HttpServer, AnswersARequestThatComesByteByByte) {
  Running server;
  Client client(server.port());
  for (const char letter : "GET / HTTP/1.1\r\nHost: " + server.host() + "\r\n\r\n") {
    client.say(std::string(1, letter));
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  EXPECT_THAT(client.hear(), StartsWith("HTTP/1.1 200 "));
}

TEST(HttpServer, RefusesBodiesAndManyHeaders) {
  Running server;
  const auto ask = [&](const std::string& first, const std::string& more) {
    Client client(server.port());
    client.say(first + " / HTTP/1.1\r\nHost: " + server.host() + "\r\n" + more);
    return client.hear().substr(0, 12);
  };
  EXPECT_EQ(ask("POST", "Content-Length: 5\r\n\r\nhello"), "HTTP/1.1 413");
  EXPECT_EQ(ask("POST", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), "HTTP/1.1 413");
  EXPECT_EQ(ask("POST", "Content-Length: 0\r\n\r\n"), "HTTP/1.1 405");
  std::string many;
  for (int i = 0; i < 100; ++i) many += "A" + std::to_string(i) + ": b\r\n";
  EXPECT_EQ(ask("GET", many + "\r\n"), "HTTP/1.1 431");
}

TEST(HttpServer, SaysThatAPortIsTaken) {
  Running server;
  try {
    HttpServer other({.port = server.port()}, [](const HttpRequest&) { return HttpResponse{}; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("is in use; choose another with --port"));
  }
}

TEST(HttpServer, TokensAreComparedAsAWhole) {
  const std::string token = make_token();
  EXPECT_EQ(token.size(), 32u);
  EXPECT_NE(token, make_token());
  HttpRequest request;
  EXPECT_FALSE(has_token(request, token));
  request.authorization = "Bearer " + token;
  EXPECT_TRUE(has_token(request, token));
  EXPECT_FALSE(has_token(request, token + "0"));
  request.authorization = "Bearer ";
  EXPECT_FALSE(has_token(request, ""));
  request.authorization = "bearer " + token;
  EXPECT_FALSE(has_token(request, token));
}

}  // namespace
}  // namespace plimsoll
