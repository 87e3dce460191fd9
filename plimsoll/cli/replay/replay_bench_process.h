// WorkerProcess: this program started again, as a ReplayWorker with another malloc, at the other end of two pipes.
//
//   WorkerProcess tcmalloc("malloc", "libtcmalloc_minimal.so.4", paths);
//   if (tcmalloc.name() == "tcmalloc") WorkerResult result = tcmalloc.run(0, "plain", 5);
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "plimsoll/cli/replay/replay_bench_worker.h"

extern char** environ;

namespace plimsoll::internal {

class WorkerProcess {
 public:
  WorkerProcess(const std::string& allocator, const std::string& preload, const std::vector<std::string>& paths) {
    int down[2], up[2];
    if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, down[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, up[1], STDOUT_FILENO);
    std::vector<std::string> words = {"replay_bench", "--worker", allocator};
    words.insert(words.end(), paths.begin(), paths.end());
    std::vector<std::string> settings;
    for (char** entry = environ; *entry != nullptr; ++entry) settings.emplace_back(*entry);
    if (!preload.empty()) settings.push_back("LD_PRELOAD=" + preload);
    const int failed =
        posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, pointers(words).data(), pointers(settings).data());
    posix_spawn_file_actions_destroy(&actions);
    close(down[0]);
    close(up[1]);
    if (failed != 0) throw std::runtime_error("cannot start a worker");
    to_ = fdopen(down[1], "w");
    from_ = fdopen(up[0], "r");
    char line[128] = "";
    if (std::fgets(line, sizeof line, from_) != nullptr) name_ = std::string(line, std::strcspn(line, "\n"));
  }
  ~WorkerProcess() {
    std::fclose(to_);
    std::fclose(from_);
    waitpid(process_, nullptr, 0);
  }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  const std::string& name() const { return name_; }  // What the worker says it is.

  WorkerResult run(std::size_t trace, const std::string& mode, int passes) {
    std::fprintf(to_, "%zu %s %d\n", trace, mode.c_str(), passes);
    std::fflush(to_);
    WorkerResult result;
    char line[256] = "";
    if (std::fgets(line, sizeof line, from_) == nullptr ||
        std::sscanf(line, "%lf %lf %zu %zu", &result.best, &result.mean, &result.reserved, &result.refusals) != 4)
      throw std::runtime_error("the worker of " + name_ + " has ended");
    return result;
  }
  void drop() {
    std::fputs("drop\n", to_);
    std::fflush(to_);
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> result;
    for (std::string& word : words) result.push_back(word.data());
    result.push_back(nullptr);
    return result;
  }
  pid_t process_ = 0;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  std::string name_;
};

}  // namespace plimsoll::internal
