// Runs an ONNX file on request, for tools/bench_onnx_models. usage: onnx_rate MODEL.onnx INPUT.npz [THREADS]
//
// Each line of standard input is a number of calls; answered by nanoseconds of the processor for each, then by
// kilobytes: resident now, the most so far, and before the model was opened.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "plimsoll/plimsoll.h"

namespace {

long kilobytes(const char* key) {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  long value = 0;
  while (file && std::fgets(line, sizeof line, file))
    if (std::strncmp(line, key, std::strlen(key)) == 0) value = std::atol(line + std::strlen(key) + 1);
  if (file) std::fclose(file);
  return value;
}

double now() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) * 1e9 + double(time.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  namespace pl = plimsoll;
  pl::config::set_threads(argc > 3 ? std::atoi(argv[3]) : 1);
  const long before = kilobytes("VmRSS:");
  const pl::OnnxModel model(argv[1]);
  std::map<std::string, pl::Tensor> inputs;
  for (const pl::OnnxEnd& end : model.inputs()) inputs[end.name] = pl::NpzFile(argv[2]).read(end.name);
  char line[64];
  while (std::fgets(line, sizeof line, stdin)) {
    const int calls = std::atoi(line);
    const double start = now();
    for (int i = 0; i < calls; ++i) model.predict(inputs);
    std::printf("%.0f %ld %ld %ld\n", (now() - start) / calls, kilobytes("VmRSS:"), kilobytes("VmHWM:"), before);
    std::fflush(stdout);
  }
}
