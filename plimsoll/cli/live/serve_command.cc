#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <memory>
#include <string>

#include "plimsoll/cli/command.h"
#include "plimsoll/cli/live/serve_source.h"
#include "plimsoll/cli/live/serve_token.h"
#include "plimsoll/cli/option_checks.h"
#include "plimsoll/observe/http/http_server.h"
#include "plimsoll/observe/report_page.h"

namespace plimsoll::internal {
namespace {

struct ServeArguments {
  std::string source, token_file;
  int port = 0;
};

constexpr const char* kContentPolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; connect-src "
    "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

HttpServer* running = nullptr;

HttpResponse text(int status, std::string body) {
  return {.status = status, .body = std::make_shared<const std::string>(std::move(body))};
}

// The page itself contains nothing about the run: it requests the data with the token of its address.
class Pages {
 public:
  Pages(ServeSource& source, const std::string& token)
      : source_(source), token_(token), page_(std::make_shared<const std::string>(live_page())) {}

  HttpResponse answer(const HttpRequest& request) {
    if (request.path == "/")
      return {
          .type = "text/html; charset=utf-8", .body = page_, .headers = {{"Content-Security-Policy", kContentPolicy}}};
    if (request.path != "/data" && request.path != "/metrics") return text(404, "there is no such page\n");
    if (!has_token(request, token_)) {
      HttpResponse response = text(401, "send the token that plimsoll serve printed: Authorization: Bearer TOKEN\n");
      response.headers.emplace_back("WWW-Authenticate", "Bearer");
      return response;
    }
    source_.refresh();
    if (request.path == "/metrics") {
      HttpResponse response = text(200, source_.metrics());
      response.type = "text/plain; version=0.0.4; charset=utf-8";
      return response;
    }
    HttpResponse response = text(204, "");
    response.headers = {{"ETag", "\"" + source_.version() + "\""},
                        {"Plimsoll-State", source_.is_growing() ? "growing" : "complete"}};
    if (!source_.data() || request.query == "have=" + source_.version()) return response;
    response.status = 200;
    response.body = source_.data();
    return response;
  }

 private:
  ServeSource& source_;
  const std::string token_;
  const std::shared_ptr<const std::string> page_;
};

void run(const ServeArguments& arguments) {
  if (!has_report_page()) static_cast<void>(live_page());  // Throws an explanation.
  const std::string token = serve_token(arguments.token_file);
  ServeSource source(arguments.source);
  Pages pages(source, token);
  HttpServer server({.port = static_cast<std::uint16_t>(arguments.port)},
                    [&](const HttpRequest& request) { return pages.answer(request); });
  running = &server;
  struct sigaction action {
  }, interrupted{}, ended{};
  action.sa_handler = [](int) {
    if (running) running->stop();
  };
  sigaction(SIGINT, &action, &interrupted);
  sigaction(SIGTERM, &action, &ended);
  std::printf(
      "%s: http://127.0.0.1:%u/#token=%s\n"
      "metrics: curl -H 'Authorization: Bearer %s' http://127.0.0.1:%u/metrics\n"
      "Only this machine can open it, and only with the token. Ctrl-C ends it.\n",
      source.title().c_str(), server.port(), token.c_str(), token.c_str(), server.port());
  std::fflush(stdout);
  server.run();
  sigaction(SIGINT, &interrupted, nullptr);
  sigaction(SIGTERM, &ended, nullptr);
  running = nullptr;
}

}  // namespace

void add_serve_command(CommandLine& line) {
  auto arguments = std::make_shared<ServeArguments>();
  Command command(line, "serve", "Show a running process, or a trace that grows, in a browser; with metrics");
  command
      .option("SOURCE", arguments->source,
              "A trace file, also while it is being recorded, or the number of a process that publishes its memory; by "
              "default the only one")
      .value("");
  command.option("--port", arguments->port, "Port of 127.0.0.1; any free one by default")
      .check(between(0, 65535))
      .value("N");
  command
      .option("--token-file", arguments->token_file,
              "Keep the token in this file, for programs such as Prometheus; made when it is missing")
      .value("FILE");
  command.notes(
      "The page is that of plimsoll report, with a timeline that grows during the run. A process records a trace for\n"
      "it until the server ends.\n"
      "  PLIMSOLL_LIVE=1 ./trainer &\n"
      "  plimsoll serve\n"
      "Prometheus: authorization: {credentials_file: FILE}, metrics_path: /metrics");
  command.run([arguments] { run(*arguments); });
}

}  // namespace plimsoll::internal
