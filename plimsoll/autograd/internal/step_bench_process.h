// OtherProcess: a copy of this process that takes steps of the same model while it is asked to, for step_bench.
#pragma once

#include <semaphore.h>
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
    sem_post(&shared_->begin);
    usleep(1000);
    const long before = shared_->steps;
    const Stopwatch watch;
    f();
    const double rate = static_cast<double>(shared_->steps - before) / (static_cast<double>(watch.ns()) / 1000);
    shared_->wanted = false;
    sem_wait(&shared_->ended);
    return rate;
  }

 private:
  struct Shared {
    Shared() { sem_init(&begin, 1, 0), sem_init(&ended, 1, 0); }
    sem_t begin, ended;  // It sleeps while not wanted: to look every now and then would disturb what is measured.
    std::atomic<bool> ready = false, wanted = false;
    std::atomic<long> steps = 0;
  };

  template <class Make>
  [[noreturn]] void work(Make&& make) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    set_num_threads(1);
    const auto model = make();
    for (int i = 0; i < 3; ++i) model->step();
    for (shared_->ready = true;; sem_post(&shared_->ended)) {
      sem_wait(&shared_->begin);
      while (shared_->wanted) {
        model->step();
        ++shared_->steps;
      }
    }
  }

  Shared* shared_;
  pid_t child_;
};

}  // namespace plimsoll::step_bench
