// OtherProcess: a copy of this process that takes steps of the same model while it is asked to, for step_bench.
#pragma once

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <new>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/thread_pool.h"

namespace plimsoll::step_bench {

class OtherProcess {
 public:
  // Forks: `make` gives the model, in the other process.
  template <class Make>
  explicit OtherProcess(Make&& make) {
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    shared_ = new (memory) Shared;
    child_ = fork();
    if (child_ == 0) work(make);
  }
  ~OtherProcess() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    munmap(shared_, sizeof(Shared));
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  // The steps that it took for each microsecond of `f`; 0 when there is no other process.
  template <class F>
  double steps_per_us_while(F&& f) {
    if (child_ < 0) return f(), 0;
    while (!shared_->ready) usleep(1000);
    shared_->wanted = true;
    usleep(1000);
    const long before = shared_->steps;
    const Stopwatch watch;
    f();
    const double rate = static_cast<double>(shared_->steps - before) / (static_cast<double>(watch.ns()) / 1000);
    shared_->wanted = false;
    while (shared_->busy) usleep(100);
    return rate;
  }

 private:
  struct Shared {
    std::atomic<bool> ready = false, wanted = false, busy = false;
    std::atomic<long> steps = 0;
  };

  template <class Make>
  [[noreturn]] void work(Make&& make) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    set_num_threads(1);
    const auto model = make();
    for (int i = 0; i < 3; ++i) model->step();
    for (shared_->ready = true;;) {
      shared_->busy = shared_->wanted.load();
      if (!shared_->busy) {
        usleep(100);
        continue;
      }
      model->step();
      ++shared_->steps;
    }
  }

  Shared* shared_;
  pid_t child_;
};

}  // namespace plimsoll::step_bench
