// HttpServer: answers GET requests on 127.0.0.1, for pages and metrics of the same machine.
//
//   HttpServer server({.port = 0}, [](const HttpRequest& request) -> HttpResponse { return {.body = ...}; });
//   server.run();                                                       // until stop(), from any thread
//
// Binds only the loopback address. Before it calls the handler, the server refuses methods other than GET (405) and
// requests whose Host is not this server's address (403), so that a name that an attacker points to 127.0.0.1 gets
// nothing. Connections are closed after one answer. Limits: HttpLimits for the request, `connections` at once (the
// oldest one without a request is dropped), `request_ms` for the request, `answer_ms` for the answer. One thread serves
// all: the handler should be fast. Thread safety: stop() from any thread and signal handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/observe/http/http_request.h"

namespace plimsoll::internal {

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body = nullptr;  // Shared, so that concurrent answers do not copy it.
  std::vector<std::pair<std::string, std::string>> headers = {};
};

struct HttpOptions {
  std::uint16_t port = 0;  // 0: any free one.
  std::size_t connections = 64;
  int request_ms = 5000, answer_ms = 30000;
  HttpLimits limits = {};
};

class PLIMSOLL_API HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  // Listens. Throws Error when the port is taken.
  HttpServer(const HttpOptions& options, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  // When the handler throws, the answer is 500. Calls `idle` about every `every_ms`.
  void run(int every_ms = 1000, const std::function<void()>& idle = {});
  void stop() noexcept;

 private:
  struct Connection;
  void accept_some();
  void read_from(Connection& connection);
  void write_to(Connection& connection);
  void answer(Connection& connection, const HttpResponse& response);
  void make_room();
  HttpResponse respond(const HttpParse& parsed) const;

  const HttpOptions options_;
  const Handler handler_;
  int listener_ = -1, wake_ = -1;
  std::uint16_t port_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;  // Oldest first.
};

// Whether the request has "Authorization: Bearer <token>"; takes the same time however much of it is right.
PLIMSOLL_API bool has_token(const HttpRequest& request, const std::string& token) noexcept;
// 128 random bits as 32 hexadecimal digits. Throws Error when the system has none.
PLIMSOLL_API std::string make_token();

}  // namespace plimsoll::internal
