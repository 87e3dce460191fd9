#include "plimsoll/observe/http/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>

#include "plimsoll/base/error.h"
#include "plimsoll/base/system_error.h"

namespace plimsoll::internal {
namespace {

using Clock = std::chrono::steady_clock;

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

HttpResponse refusal(int status, const std::string& why) {
  return {.status = status, .body = std::make_shared<const std::string>(why + "\n")};
}

}  // namespace

struct HttpServer::Connection {
  explicit Connection(int socket) : file(socket) {}
  ~Connection() {
    if (file >= 0) close(file);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool answers() const noexcept { return !head.empty(); }

  int file;
  Clock::time_point until;
  std::string in, head;                     // Received; the answer's head.
  std::shared_ptr<const std::string> body;  // The answer's body.
  std::size_t sent = 0;                     // Of head and body.
  bool done = false;
};

HttpServer::HttpServer(const HttpOptions& options, Handler handler) : options_(options), handler_(std::move(handler)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(options.port);
  socklen_t size = sizeof(address);
  int error = 0;
  if (listener_ < 0 || setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener_, 128) != 0 || getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      (wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
    error = errno;
  if (error != 0) {
    if (listener_ >= 0) close(listener_);
    if (error == EADDRINUSE)
      throw Error(fmt::format("serve: port {} of 127.0.0.1 is in use; choose another with --port, or leave it out",
                              options.port));
    throw_system_error("serve", fmt::format("127.0.0.1:{}", options.port), "listen on", error);
  }
  port_ = ntohs(address.sin_port);
}

HttpServer::~HttpServer() {
  close(listener_);
  close(wake_);
}

void HttpServer::stop() noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(write(wake_, &one, sizeof(one)));
}

void HttpServer::run(int every_ms, const std::function<void()>& idle) {
  auto next_idle = Clock::now();
  for (;;) {
    std::vector<pollfd> waits = {{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const auto& connection : connections_)
      waits.push_back({connection->file, static_cast<short>(connection->answers() ? POLLOUT : POLLIN), 0});
    if (poll(waits.data(), waits.size(), std::min(every_ms, 250)) < 0 && errno != EINTR)
      throw_system_error("serve", fmt::format("127.0.0.1:{}", port_), "wait on", errno);
    if (waits[0].revents != 0) return;
    const auto now = Clock::now();
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      Connection& connection = *connections_[i];
      if (now >= connection.until) connection.done = true;
      if (connection.done || waits[i + 2].revents == 0) continue;
      connection.answers() ? write_to(connection) : read_from(connection);
    }
    std::erase_if(connections_, [](const auto& connection) { return connection->done; });
    if (waits[1].revents != 0) accept_some();
    if (idle && now >= next_idle) {
      idle();
      next_idle = now + std::chrono::milliseconds(every_ms);
    }
  }
}

// Accepts a few at a time, so that existing connections get their turn.
void HttpServer::accept_some() {
  for (int i = 0; i < 16; ++i) {
    const int file = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (file < 0) return;
    auto connection = std::make_unique<Connection>(file);
    connection->until = Clock::now() + std::chrono::milliseconds(options_.request_ms);
    if (connections_.size() >= options_.connections) make_room();
    if (connections_.size() < options_.connections) connections_.push_back(std::move(connection));
  }
}

void HttpServer::make_room() {
  const auto idle = std::find_if(connections_.begin(), connections_.end(),
                                 [](const auto& connection) { return !connection->answers(); });
  if (idle != connections_.end()) connections_.erase(idle);
}

void HttpServer::read_from(Connection& connection) {
  std::array<char, 4096> piece;
  const ssize_t count = recv(connection.file, piece.data(), piece.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    connection.done = true;
    return;
  }
  connection.in.append(piece.data(), static_cast<std::size_t>(count));
  const HttpParse parsed = parse_http_request(connection.in, options_.limits);
  if (parsed.status != 0) answer(connection, respond(parsed));
}

HttpResponse HttpServer::respond(const HttpParse& parsed) const {
  if (parsed.status != 200) return refusal(parsed.status, reason_of(parsed.status));
  const HttpRequest& request = parsed.request;
  if (request.method != "GET") {
    HttpResponse response = refusal(405, "only GET is answered here");
    response.headers.emplace_back("Allow", "GET");
    return response;
  }
  if (request.host != fmt::format("127.0.0.1:{}", port_) && request.host != fmt::format("localhost:{}", port_))
    return refusal(403, "the Host header must name this server: 127.0.0.1 with its port");
  try {
    return handler_(request);
  } catch (const std::exception& error) {
    return refusal(500, error.what());
  }
}

void HttpServer::answer(Connection& connection, const HttpResponse& response) {
  connection.body = response.body;
  connection.head = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n",
      response.status, reason_of(response.status), response.type, response.body ? response.body->size() : 0);
  for (const auto& [name, value] : response.headers) connection.head += fmt::format("{}: {}\r\n", name, value);
  connection.head += "\r\n";
  connection.until = Clock::now() + std::chrono::milliseconds(options_.answer_ms);
  connection.in.clear();
  write_to(connection);
}

void HttpServer::write_to(Connection& connection) {
  const std::size_t head = connection.head.size(), body = connection.body ? connection.body->size() : 0;
  while (connection.sent < head + body) {
    const std::string_view rest = connection.sent < head
                                      ? std::string_view(connection.head).substr(connection.sent)
                                      : std::string_view(*connection.body).substr(connection.sent - head);
    const ssize_t count = send(connection.file, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count < 0) break;
    connection.sent += static_cast<std::size_t>(count);
  }
  shutdown(connection.file, SHUT_WR);
  std::array<char, 4096> rest;  // Bytes left unread would make the system reset the connection and drop the answer.
  for (int i = 0; i < 16 && recv(connection.file, rest.data(), rest.size(), 0) > 0; ++i) {
  }
  connection.done = true;
}

bool has_token(const HttpRequest& request, const std::string& token) noexcept {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view given = request.authorization;
  if (!given.starts_with(kBearer) || given.size() - kBearer.size() != token.size() || token.empty()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < token.size(); ++i)
    difference |= static_cast<unsigned char>(given[kBearer.size() + i]) ^ static_cast<unsigned char>(token[i]);
  return difference == 0;
}

std::string make_token() {
  std::array<unsigned char, 16> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw_system_error("serve", "token", "draw", errno);
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

}  // namespace plimsoll::internal
