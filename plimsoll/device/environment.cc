#include "plimsoll/device/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/device_kind.h"
#include "plimsoll/device/device_name.h"
#include "plimsoll/device/runtime.h"

namespace plimsoll::internal {
namespace {

constexpr const char* kMemoryLimit = "PLIMSOLL_MEMORY_LIMIT";
constexpr const char* kVisibleDevices = "PLIMSOLL_VISIBLE_DEVICES";
constexpr const char* kThreads = "PLIMSOLL_THREADS";
constexpr const char* kLogLevel = "PLIMSOLL_LOG_LEVEL";
constexpr const char* kLive = "PLIMSOLL_LIVE";
constexpr std::size_t kLeastLimit = 1_MiB;
constexpr int kMostThreads = 1024;

[[noreturn]] void refuse(const char* name, std::string_view value, const std::string& allowed) {
  throw InvalidArgument(fmt::format("environment: {} is \"{}\"; {}", name, value, allowed));
}

// Calls f(value) if the variable is set.
template <class F>
auto read(const char* name, F&& f) -> std::optional<decltype(f(std::string_view()))> {
  const char* const value = std::getenv(name);
  if (!value) return std::nullopt;
  return f(std::string_view(value));
}

std::size_t parse_limit(std::string_view text) {
  std::size_t bytes = 0;
  try {
    bytes = parse_bytes(text);
  } catch (const InvalidArgument&) {  // Refused below, as 0.
  }
  if (bytes < kLeastLimit || bytes > kMostLimit)
    refuse(kMemoryLimit, text,
           fmt::format("give a size from {} to {}, such as 512MiB or 2GiB (a number without a unit is bytes)",
                       format_bytes(kLeastLimit), format_bytes(kMostLimit)));
  return bytes;
}

std::string names_of(const std::vector<PhysicalDevice>& devices) {
  std::string names;
  for (const PhysicalDevice& device : devices) names += (names.empty() ? "" : ",") + device.name;
  return names;
}

std::vector<std::string> parse_devices(std::string_view text, const std::vector<PhysicalDevice>& machine) {
  const auto refuse_it = [&] {
    refuse(kVisibleDevices, text,
           fmt::format("give names of this machine's devices, separated by commas ({}), or nothing for {} alone",
                       names_of(machine), kHostDevice));
  };
  std::vector<std::string> names;
  for (std::size_t begin = 0; !text.empty() && begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string name;
    try {
      name = parse_device_name(text.substr(begin, end - begin)).text();
    } catch (const InvalidArgument&) {  // Then it is not a device name.
    }
    const bool known = std::any_of(machine.begin(), machine.end(), [&](const auto& it) { return it.name == name; });
    if (!known || std::find(names.begin(), names.end(), name) != names.end()) refuse_it();
    names.push_back(std::move(name));
    begin = end + 1;
  }
  if (std::find(names.begin(), names.end(), kHostDevice) == names.end()) names.insert(names.begin(), kHostDevice);
  return names;
}

int parse_threads(std::string_view text) {
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc() || end != text.data() + text.size() || threads < 1 || threads > kMostThreads)
    refuse(kThreads, text, fmt::format("give a number from 1 to {}", kMostThreads));
  return threads;
}

LogLevel parse_level(std::string_view text) {
  try {
    return parse_log_level(text);
  } catch (const InvalidArgument&) {
    refuse(kLogLevel, text, "give \"debug\", \"info\", \"warning\", \"error\" or \"off\"");
  }
}

bool parse_live(std::string_view text) {
  if (text != "0" && text != "1" && !text.empty()) refuse(kLive, text, "give \"1\" or \"0\"");
  return text == "1";
}

// Whether the program set no limit for a device, so that the environment's applies.
bool limit_counts(const Settings& settings) {
  for (const PhysicalDevice& device : find_physical_devices()) {
    const DeviceSettings set = settings.of(device.name);
    const bool all_given = !set.logical.empty() && std::all_of(set.logical.begin(), set.logical.end(),
                                                               [](const auto& it) { return it.memory_limit > 0; });
    if (set.fraction == 0 && !all_given) return true;
  }
  return false;
}

}  // namespace

void want_visible_devices() {
  const char* const value = std::getenv(kVisibleDevices);
  const std::string_view text = value ? value : "";
  for (const DeviceKind& kind : device_kinds())
    for (const std::string& type : kind.types)
      if (device_type(text).find(type + ":") != std::string::npos) want_devices(type);
}

DeviceEnvironment read_device_environment(const std::vector<PhysicalDevice>& machine) {
  return {.memory_limit = read(kMemoryLimit, parse_limit),
          .visible = read(kVisibleDevices, [&](std::string_view text) { return parse_devices(text, machine); })};
}

ProcessEnvironment read_process_environment() {
  return {.threads = read(kThreads, parse_threads),
          .log_level = read(kLogLevel, parse_level),
          .live = read(kLive, parse_live)};
}

std::vector<EnvironmentVariable> environment_variables() {
  static_cast<void>(Runtime::instance().devices());
  const Settings settings = Runtime::instance().settings();
  const config::ProcessChoices chosen = config::process_choices();
  std::vector<EnvironmentVariable> variables;
  const auto add = [&](const char* name, bool in_force) {
    if (const char* const value = std::getenv(name)) variables.push_back({name, value, in_force});
  };
  add(kMemoryLimit, limit_counts(settings));
  add(kVisibleDevices, !settings.visible_chosen);
  add(kThreads, !chosen.threads);
  add(kLogLevel, !chosen.log_level);
  add(kLive, true);
  std::vector<std::string> warnings;
  const bool growth = forced_growth(warnings).has_value();
  add("PLIMSOLL_FORCE_ALLOW_GROWTH", growth);
  add("TF_FORCE_GPU_ALLOW_GROWTH", growth && !std::getenv("PLIMSOLL_FORCE_ALLOW_GROWTH"));
  return variables;
}

}  // namespace plimsoll::internal
