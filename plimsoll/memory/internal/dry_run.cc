#include "plimsoll/memory/internal/dry_run.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

#include "plimsoll/memory/internal/arena_core.h"

namespace plimsoll::internal {
namespace {

class NoPages final : public PageRange {
 public:
  explicit NoPages(std::size_t bytes) : PageRange(nullptr, bytes) {}
  bool commit(std::size_t, std::size_t) noexcept override { return true; }
  bool release(std::size_t, std::size_t) noexcept override { return true; }
  std::size_t move(std::size_t, std::size_t, std::size_t bytes) noexcept override { return bytes; }
};

// As many addresses as another source reserves, without memory.
class DryPageSource final : public PageSource {
 public:
  explicit DryPageSource(const PageSource& like) : like_(like) {}
  std::size_t page_bytes() const noexcept override { return like_.page_bytes(); }
  std::size_t range_bytes(std::size_t limit) const noexcept override { return like_.range_bytes(limit); }
  std::unique_ptr<PageRange> reserve(std::size_t wanted, std::size_t least) override {
    return std::make_unique<NoPages>(std::max(wanted, least));
  }

 private:
  const PageSource& like_;
};

// This thread without budgets, with a cache of the arena in the table entry reserved for dry runs.
class DryThread {
 public:
  explicit DryThread(ArenaCore& core) : core_(core), budget_(std::exchange(thread_.budget, nullptr)) {
    core.set_number(ArenaCore::kDryNumber);
  }
  ~DryThread() {
    core_.detach(thread_);
    thread_.budget = budget_;
  }
  DryThread(const DryThread&) = delete;
  DryThread& operator=(const DryThread&) = delete;

 private:
  ArenaCore& core_;
  ThreadMemory& thread_ = ThreadMemory::current();
  Meter* const budget_;
};

bool run(ArenaCore& core, const RequestLog& log) {
  std::vector<Chunk*> taken;
  bool served = true;
  log.for_each([&](const LoggedRequest& request) {
    switch (request.kind) {
      case LoggedRequest::kTake:
        taken.push_back(core.try_take(request.size, request.alignment));
        served = taken.back() != nullptr;
        break;
      case LoggedRequest::kRefused:
        if (Chunk* chunk = core.try_take(request.size, request.alignment)) core.give_slowly(chunk);
        break;
      case LoggedRequest::kGive:
        core.give_slowly(taken[request.which]);
        break;
      case LoggedRequest::kEmptyCaches:
        core.heap.empty_caches();
        break;
      case LoggedRequest::kTrim:
        core.heap.trim();
        break;
      case LoggedRequest::kCollect:
        core.heap.collect();
        break;
      case LoggedRequest::kResetPeaks:
        core.reset_peaks();
        break;
    }
    return served;
  });
  return served;
}

bool serves(ArenaCore& like, std::size_t limit, const RequestLog& log, const BlockRequest& request) {
  DryPageSource source(like.heap.source());
  ArenaOptions options = like.options;
  options.limit = limit;
  ArenaCore core(like.arena, source, std::move(options));
  const DryThread thread(core);
  return run(core, log) && core.try_take(request.size, request.alignment);
}

// Finds the border between refused and sufficient, starting at the guess: first doubling steps, then bisection.
template <class F>
void find_border(std::size_t refused, std::size_t guess, F&& serves) {
  std::size_t enough = guess;
  if (serves(guess)) {
    for (std::size_t step = 1; enough - refused > 1; step *= 2) {
      const std::size_t at = std::max(refused + 1, enough - std::min(enough, step));
      if (!serves(at)) {
        refused = at;
        break;
      }
      enough = at;
    }
  } else {
    refused = guess;
    for (std::size_t step = 1; !serves(enough = refused + step); step *= 2) refused = enough;
  }
  while (enough - refused > 1) {
    const std::size_t middle = refused + (enough - refused) / 2;
    (serves(middle) ? enough : refused) = middle;
  }
}

struct Spent {};

}  // namespace

std::size_t pages_when_run_again(ArenaCore& core, const RequestLog& log, const BlockRequest& request, std::size_t guess,
                                 std::size_t& most_words) noexcept {
  static std::mutex* const one_at_a_time = new std::mutex;        // Threads have one entry for a dry arena's cache.
  const std::unique_lock lock(*one_at_a_time, std::try_to_lock);  // Never waits: a fork may have left it locked.
  if (!lock) return 0;
  std::size_t enough = 0;
  try {
    find_border(core.heap.page_limit(), guess, [&](std::size_t pages) {
      if (most_words < log.words() || pages > Heap::most_pages()) throw Spent{};
      most_words -= log.words();
      const bool served = serves(core, pages << core.heap.page_shift(), log, request);
      if (served) enough = enough == 0 ? pages : std::min(enough, pages);
      return served;
    });
  } catch (const Spent&) {
  } catch (const std::exception&) {
  }
  return enough;
}

}  // namespace plimsoll::internal
