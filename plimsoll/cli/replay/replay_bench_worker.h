// ReplayWorker: one allocator in a separate process, which reads from lines which trace to replay and how often.
//
// The benchmark starts one process per allocator (peers by LD_PRELOAD) and alternates between them, so that all are
// measured in the same minute of a machine whose speed changes:
//   in   <trace number> <mode> <passes>      mode: plain, touch, growth, tight
//   out  <best ns> <mean ns> <peak reserved> <refusals>
// A resource lives as long as trace and mode stay in use: passes after the first find it warm. "drop" frees all.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/cli/replay/replay_pass.h"
#include "plimsoll/cli/replay/trace_csv.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/bfc/bfc_resource.h"
#include "plimsoll/memory/pages/host_page_source.h"

namespace plimsoll::internal {

struct WorkerResult {
  double best = 0, mean = 0;
  std::size_t reserved = 0, refusals = 0;
};

inline std::size_t tight_limit(const Trace& trace) {
  return static_cast<std::size_t>(1.02 * static_cast<double>(trace.peak_live)) + 256_KiB;
}

// The process's malloc, aligned as our blocks are.
class MallocMemory {
 public:
  class Handle {
   public:
    explicit Handle(void* data = nullptr) noexcept : data_(data) {}
    void* data() const noexcept { return data_; }
    explicit operator bool() const noexcept { return data_ != nullptr; }

   private:
    void* data_;
  };
  Handle allocate(std::size_t bytes) noexcept {
    void* data = nullptr;
    return Handle(posix_memalign(&data, 64, bytes) == 0 ? data : nullptr);
  }
  void deallocate(Handle handle) noexcept { std::free(handle.data()); }

  // Whose malloc this is, recognized by a symbol that only it has.
  static const char* name() {
    if (dlsym(RTLD_DEFAULT, "tc_version") != nullptr) return "tcmalloc";
    if (dlsym(RTLD_DEFAULT, "mi_version") != nullptr) return "mimalloc";
    if (dlsym(RTLD_DEFAULT, "mallctl") != nullptr) return "jemalloc";
    return "glibc";
  }
};

// Replays one trace in one mode; keeps its resource between calls.
class WorkerRun {
 public:
  virtual ~WorkerRun() = default;
  virtual WorkerResult run(const Trace& trace, bool touch, int passes) = 0;
};

template <class Memory, class Handle>
WorkerResult timed_passes(const Trace& trace, Memory& memory, std::vector<Handle>& blocks, bool touch, int passes) {
  WorkerResult result;
  for (int pass = 0; pass < passes; ++pass) {
    const double begin = thread_cpu_ns();
    result.refusals += replay_pass(trace, memory, blocks, {.touch = touch});
    const double each = (thread_cpu_ns() - begin) / static_cast<double>(trace.operations.size());
    release_all(memory, blocks);
    result.best = pass == 0 ? each : std::min(result.best, each);
    result.mean += each / passes;
  }
  return result;
}

class MallocRun final : public WorkerRun {
 public:
  WorkerResult run(const Trace& trace, bool touch, int passes) override {
    blocks_.resize(trace.slots);
    return timed_passes(trace, memory_, blocks_, touch, passes);
  }

 private:
  MallocMemory memory_;
  std::vector<MallocMemory::Handle> blocks_;
};

class BfcRun final : public WorkerRun {
 public:
  WorkerResult run(const Trace& trace, bool touch, int passes) override {
    blocks_.resize(trace.slots);
    WorkerResult result = timed_passes(trace, bfc_, blocks_, touch, passes);
    result.reserved = bfc_.stats().peak_bytes_reserved;
    return result;
  }

 private:
  BfcResource bfc_{{.limit = 16_GiB, .growth = true}};
  std::vector<Block> blocks_;
};

class ArenaRun final : public WorkerRun {
 public:
  ArenaRun(const Trace& trace, const std::string& mode)
      : arena_(pages_,
               {.name = "bench", .limit = mode == "tight" ? tight_limit(trace) : 8_GiB, .growth = mode == "growth"}) {}

  WorkerResult run(const Trace& trace, bool touch, int passes) override {
    blocks_.resize(trace.slots);
    WorkerResult result = timed_passes(trace, arena_, blocks_, touch, passes);
    result.reserved = arena_.stats().peak_bytes_reserved;
    return result;
  }

 private:
  HostPageSource pages_;
  Arena arena_;
  std::vector<Block> blocks_;
};

class ReplayWorker {
 public:
  ReplayWorker(std::string allocator, std::vector<std::string> paths)
      : allocator_(std::move(allocator)), paths_(std::move(paths)) {}

  int serve() {
    std::printf("%s\n", allocator_ == "malloc" ? MallocMemory::name() : allocator_.c_str());
    std::fflush(stdout);
    char line[128];
    while (std::fgets(line, sizeof line, stdin) != nullptr) {
      char mode[32] = "";
      int number = 0, passes = 0;
      if (std::sscanf(line, "%d %31s %d", &number, mode, &passes) == 3) {
        answer(number, mode, passes);
      } else {
        runs_.clear();
        trace_number_ = -1;
      }
    }
    return 0;
  }

 private:
  void answer(int number, const std::string& mode, int passes) {
    if (number != trace_number_) {
      runs_.clear();
      trace_ = read_trace(paths_.at(static_cast<std::size_t>(number)));
      trace_number_ = number;
    }
    std::unique_ptr<WorkerRun>& run = runs_[mode];
    if (!run) run = make(mode);
    const WorkerResult result = run->run(trace_, mode == "touch" || mode == "tight", passes);
    std::printf("%f %f %zu %zu\n", result.best, result.mean, result.reserved, result.refusals);
    std::fflush(stdout);
  }

  std::unique_ptr<WorkerRun> make(const std::string& mode) const {
    if (allocator_ == "arena") return std::make_unique<ArenaRun>(trace_, mode);
    if (allocator_ == "bfc") return std::make_unique<BfcRun>();
    return std::make_unique<MallocRun>();
  }

  const std::string allocator_;
  const std::vector<std::string> paths_;
  int trace_number_ = -1;
  Trace trace_;
  std::map<std::string, std::unique_ptr<WorkerRun>> runs_;
};

}  // namespace plimsoll::internal
