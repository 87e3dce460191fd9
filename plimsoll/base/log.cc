#include "plimsoll/base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <mutex>
#include <utility>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

constexpr std::array<const char*, 5> kLevels = {"debug", "info", "warning", "error", "off"};
constinit std::atomic<LogLevel> current_level{LogLevel::warning};

// Never destroyed: other singletons may log while the process ends. The logger has no registered name, so it does not
// interfere with the host program's own use of spdlog.
struct Output {
  std::mutex mutex;
  LogSink sink;
  spdlog::logger logger{"plimsoll", std::make_shared<spdlog::sinks::stderr_sink_mt>()};

  Output() {
    logger.set_level(spdlog::level::trace);
    logger.set_pattern("plimsoll: %l: %v");
    logger.flush_on(spdlog::level::trace);
  }
};

Output& output() {
  static Output* const output = new Output;
  return *output;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
    case LogLevel::off:
      break;
  }
  return spdlog::level::err;
}

}  // namespace

LogLevel set_log_level(LogLevel level) noexcept { return current_level.exchange(level); }
LogLevel log_level() noexcept { return current_level.load(std::memory_order_relaxed); }

LogLevel parse_log_level(std::string_view name) {
  for (std::size_t i = 0; i < kLevels.size(); ++i)
    if (name == kLevels[i]) return static_cast<LogLevel>(i);
  throw InvalidArgument(fmt::format("log level \"{}\": unknown; use debug, info, warning, error or off", name));
}

void log_message(LogLevel level, std::string_view text) noexcept {
  if (!log_enabled(level)) return;
  try {
    Output& to = output();
    const std::lock_guard lock(to.mutex);
    if (to.sink)
      to.sink(level, text);
    else
      to.logger.log(spdlog_level(level), spdlog::string_view_t(text.data(), text.size()));
  } catch (...) {  // A message that cannot be written is lost; the work continues.
  }
}

LogSink set_log_sink(LogSink sink) {
  Output& to = output();
  const std::lock_guard lock(to.mutex);
  return std::exchange(to.sink, std::move(sink));
}

}  // namespace plimsoll::internal
