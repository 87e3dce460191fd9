// The settings that may change at any time, and the way back to the beginning. See config.h.
#include <array>
#include <mutex>

#include "plimsoll/base/log.h"
#include "plimsoll/base/processors.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/device/config.h"
#include "plimsoll/device/runtime.h"

namespace plimsoll::config {
namespace {

constinit std::mutex seed_mutex;
constinit SeedState chosen_seed;  // Guarded by seed_mutex.

void set_chosen_seed(std::optional<std::uint64_t> seed) {
  const std::lock_guard lock(seed_mutex);
  chosen_seed = {.seed = seed, .version = chosen_seed.version + 1};
}

}  // namespace

void set_threads(int threads) { set_num_threads(threads); }
int get_threads() { return num_threads(); }

void set_seed(std::uint64_t seed) { set_chosen_seed(seed); }
std::optional<std::uint64_t> get_seed() { return seed_state().seed; }
SeedState seed_state() {
  const std::lock_guard lock(seed_mutex);
  return chosen_seed;
}

void set_log_level(std::string_view level) { plimsoll::set_log_level(parse_log_level(level)); }
std::string get_log_level() {
  constexpr std::array<const char*, 5> kNames = {"debug", "info", "warning", "error", "off"};
  return kNames.at(static_cast<std::size_t>(log_level()));
}

void reset_for_testing() {
  Runtime::instance().reset();  // Refuses first, if it has to.
  set_chosen_seed(std::nullopt);
  set_num_threads(usable_processors());
  plimsoll::set_log_level(LogLevel::warning);
}

}  // namespace plimsoll::config
