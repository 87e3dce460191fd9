// OpenclApi: the OpenCL library of this machine, loaded on first use; nothing links against it.
//
//   const OpenclApi* cl = OpenclApi::load();      // nullptr: why_not() says what is missing
//   cl->clGetPlatformIDs(...)
//
// Loading closes traps of PoCL, the implementation for processors: it would install signal handlers (turned off through
// its environment variables, unless the program set them; those of its compiler are taken back, see KeepHandlers), and
// its threads would take the program's signals (they start with all of them blocked). After fork() its threads are gone
// and a wait would never end: is_forked() says so. Thread safety: any thread.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120  // NOLINT(readability-identifier-naming): read by cl.h.
#include <CL/cl.h>
#include <signal.h>

#include <string>

namespace plimsoll::internal {

#define PLIMSOLL_OPENCL_FUNCTIONS(f)                                                                                   \
  f(clGetPlatformIDs) f(clGetPlatformInfo) f(clGetDeviceIDs) f(clGetDeviceInfo) f(clCreateContext) f(clReleaseContext) \
      f(clCreateCommandQueue) f(clReleaseCommandQueue) f(clCreateBuffer) f(clReleaseMemObject)                         \
          f(clCreateProgramWithSource) f(clCreateProgramWithBinary) f(clBuildProgram) f(clGetProgramInfo)              \
              f(clGetProgramBuildInfo) f(clReleaseProgram) f(clCreateKernel) f(clReleaseKernel) f(clSetKernelArg)      \
                  f(clEnqueueNDRangeKernel) f(clEnqueueReadBuffer) f(clEnqueueWriteBuffer) f(clEnqueueCopyBuffer)      \
                      f(clEnqueueFillBuffer) f(clFlush) f(clFinish) f(clReleaseEvent) f(clWaitForEvents)

class OpenclApi {
 public:
  static const OpenclApi* load();
  static std::string why_not();  // Empty when it is loaded.
  static bool is_forked() noexcept;

#define PLIMSOLL_MEMBER(name) decltype(&::name) name = nullptr;
  PLIMSOLL_OPENCL_FUNCTIONS(PLIMSOLL_MEMBER)
#undef PLIMSOLL_MEMBER

 private:
  bool open(std::string& why_not);
};

// While it lives, this thread blocks all signals, and so do threads that it starts.
class BlockSignals {
 public:
  BlockSignals();
  ~BlockSignals();
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  unsigned long before_[16];  // Room for a sigset_t, which headers of ours need not know.
};

// When it ends, signals have the handlers again that they had, where the compiler of a driver has replaced them: LLVM
// does when it first compiles. Handlers that the program itself sets in between stay.
class KeepHandlers {
 public:
  KeepHandlers();
  ~KeepHandlers();
  KeepHandlers(const KeepHandlers&) = delete;
  KeepHandlers& operator=(const KeepHandlers&) = delete;

 private:
  struct sigaction before_[32];
};

// "CL_OUT_OF_RESOURCES (-5)".
std::string opencl_error(cl_int code);

}  // namespace plimsoll::internal
