// The settings that may change at any time, and reset_for_testing(). See config.h.
#include <array>
#include <mutex>

#include "plimsoll/base/log.h"
#include "plimsoll/base/processors.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/device/config.h"
#include "plimsoll/device/environment.h"
#include "plimsoll/device/runtime.h"

namespace plimsoll::config {
namespace {

constinit std::mutex seed_mutex;
constinit SeedState chosen_seed;  // Guarded by seed_mutex.
constinit std::mutex choices_mutex;
constinit ProcessChoices choices;  // Guarded by choices_mutex, as is the next.
constinit bool environment_applied = false;

void set_chosen_seed(std::optional<std::uint64_t> seed) {
  const std::lock_guard lock(seed_mutex);
  chosen_seed = {.seed = seed, .version = chosen_seed.version + 1};
}

}  // namespace

void apply_process_environment() {
  const std::lock_guard lock(choices_mutex);
  if (environment_applied) return;
  const ProcessEnvironment environment = read_process_environment();
  if (environment.threads && !choices.threads) set_num_threads(*environment.threads);
  if (environment.log_level && !choices.log_level) plimsoll::set_log_level(*environment.log_level);
  environment_applied = true;
}

ProcessChoices process_choices() {
  const std::lock_guard lock(choices_mutex);
  return choices;
}

void set_threads(int threads) {
  const std::lock_guard lock(choices_mutex);
  set_num_threads(threads);
  choices.threads = true;
}
int get_threads() {
  apply_process_environment();
  return num_threads();
}

void set_seed(std::uint64_t seed) { set_chosen_seed(seed); }
std::optional<std::uint64_t> get_seed() { return seed_state().seed; }
SeedState seed_state() {
  const std::lock_guard lock(seed_mutex);
  return chosen_seed;
}

void set_log_level(std::string_view level) {
  const LogLevel parsed = parse_log_level(level);
  const std::lock_guard lock(choices_mutex);
  plimsoll::set_log_level(parsed);
  choices.log_level = true;
}
std::string get_log_level() {
  apply_process_environment();
  constexpr std::array<const char*, 5> kNames = {"debug", "info", "warning", "error", "off"};
  return kNames.at(static_cast<std::size_t>(log_level()));
}

void reset_for_testing() {
  Runtime::instance().reset();  // Throws first, if it must.
  set_chosen_seed(std::nullopt);
  set_num_threads(usable_processors());
  plimsoll::set_log_level(LogLevel::warning);
  const std::lock_guard lock(choices_mutex);
  choices = {};
  environment_applied = false;
}

}  // namespace plimsoll::config
