#include "plimsoll/device/opencl/opencl_api.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace plimsoll::internal {
namespace {

std::atomic<bool> forked{false};
static_assert(sizeof(sigset_t) <= sizeof(unsigned long[16]));

}  // namespace

BlockSignals::BlockSignals() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::memcpy(before_, &before, sizeof(before));
}

BlockSignals::~BlockSignals() {
  sigset_t before;
  std::memcpy(&before, before_, sizeof(before));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

KeepHandlers::KeepHandlers() {
  for (int number = 1; number < 32; ++number) sigaction(number, nullptr, &before_[number]);
}

KeepHandlers::~KeepHandlers() {
  for (int number = 1; number < 32; ++number) {
    struct sigaction now = {};
    if (sigaction(number, nullptr, &now) != 0 || now.sa_handler == before_[number].sa_handler) continue;
    Dl_info from = {};
    if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN ||
        !dladdr(reinterpret_cast<void*>(now.sa_handler), &from))
      continue;
    const std::string_view file = from.dli_fname ? from.dli_fname : "";
    for (const char* name : {"LLVM", "pocl", "clang"})
      if (file.find(name) != std::string_view::npos) {
        sigaction(number, &before_[number], nullptr);
        break;
      }
  }
}

bool OpenclApi::open(std::string& why_not) {
  setenv("POCL_SIGFPE_HANDLER", "0", 0);
  setenv("POCL_SIGUSR2_HANDLER", "0", 0);
  void* const library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    why_not = "libOpenCL.so.1 is not installed (Debian: ocl-icd-libopencl1, and pocl-opencl-icd or a GPU's driver)";
    return false;
  }
#define PLIMSOLL_FIND(name)                                                   \
  name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name));          \
  if (!name) {                                                                \
    why_not = "libOpenCL.so.1 has no " #name "; it is older than OpenCL 1.2"; \
    return false;                                                             \
  }
  PLIMSOLL_OPENCL_FUNCTIONS(PLIMSOLL_FIND)
#undef PLIMSOLL_FIND
  pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
  return true;
}

namespace {

struct Loaded {
  OpenclApi api;
  std::string why_not;
  bool is_there = false;
};

}  // namespace

const OpenclApi* OpenclApi::load() {
  static Loaded& loaded = *new Loaded;  // Never destroyed: devices may end after it would.
  static const bool done = [] {
    const BlockSignals blocked;
    loaded.is_there = loaded.api.open(loaded.why_not);
    return true;
  }();
  static_cast<void>(done);
  return loaded.is_there ? &loaded.api : nullptr;
}

std::string OpenclApi::why_not() {
  OpenclApi trial;
  std::string text;
  if (!load()) trial.open(text);
  return text;
}

bool OpenclApi::is_forked() noexcept { return forked.load(std::memory_order_relaxed); }

std::string opencl_error(cl_int code) {
  const char* name = "an error";
  switch (code) {
#define PLIMSOLL_CODE(code) \
  case code:                \
    name = #code;           \
    break;
    PLIMSOLL_CODE(CL_DEVICE_NOT_FOUND)
    PLIMSOLL_CODE(CL_DEVICE_NOT_AVAILABLE)
    PLIMSOLL_CODE(CL_COMPILER_NOT_AVAILABLE)
    PLIMSOLL_CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    PLIMSOLL_CODE(CL_OUT_OF_RESOURCES)
    PLIMSOLL_CODE(CL_OUT_OF_HOST_MEMORY)
    PLIMSOLL_CODE(CL_BUILD_PROGRAM_FAILURE)
    PLIMSOLL_CODE(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    PLIMSOLL_CODE(CL_INVALID_VALUE)
    PLIMSOLL_CODE(CL_INVALID_MEM_OBJECT)
    PLIMSOLL_CODE(CL_INVALID_KERNEL_ARGS)
    PLIMSOLL_CODE(CL_INVALID_ARG_SIZE)
    PLIMSOLL_CODE(CL_INVALID_WORK_GROUP_SIZE)
    PLIMSOLL_CODE(CL_INVALID_BUFFER_SIZE)
#undef PLIMSOLL_CODE
    default:
      break;
  }
  return fmt::format("{} ({})", name, code);
}

}  // namespace plimsoll::internal
