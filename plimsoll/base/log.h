// Log messages: a few lines on standard error about things that are not errors but worth knowing.
//
//   log_message(LogLevel::warning, "device CPU:0: reserved less than asked for (address space limit)");
//   if (log_enabled(LogLevel::debug)) log_message(LogLevel::debug, costly_text());
//   set_log_level(parse_log_level("debug"));
//
// By default warnings and errors are shown. Thread safety: any thread; lines are not mixed. Cost: log_enabled is one
// load.
#pragma once

#include <atomic>
#include <functional>
#include <string_view>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

enum class LogLevel : int { debug, info, warning, error, off };

// Messages below `level` are dropped from now on. Returns the previous level.
PLIMSOLL_API LogLevel set_log_level(LogLevel level) noexcept;
PLIMSOLL_API LogLevel log_level() noexcept;
inline bool log_enabled(LogLevel level) noexcept { return level >= log_level() && level != LogLevel::off; }

// "debug", "info", "warning", "error", "off". Throws InvalidArgument for anything else.
PLIMSOLL_API LogLevel parse_log_level(std::string_view name);

// Writes "plimsoll: warning: <text>" and a line end, if `level` is enabled. Never throws.
PLIMSOLL_API void log_message(LogLevel level, std::string_view text) noexcept;

// Sends messages elsewhere: to the host program's own log, or to a test. An empty function restores standard error.
// Returns the previous sink. The sink is called from any thread, one message at a time, must not log, and must not
// throw.
using LogSink = std::function<void(LogLevel level, std::string_view text)>;
PLIMSOLL_API LogSink set_log_sink(LogSink sink);

}  // namespace plimsoll::internal
