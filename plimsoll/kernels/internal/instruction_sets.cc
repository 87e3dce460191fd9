#include "plimsoll/kernels/internal/instruction_sets.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace plimsoll::internal {

#if defined(__x86_64__)
namespace {

bool has_f16c() noexcept {  // clang 14 does not know it by name.
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

int found() noexcept {
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has_avx512 ? 3 : has_avx2 ? 2 : 1;
}

}  // namespace

int num_instruction_sets() noexcept {
  static const int count = found();
  return count;
}
#else
int num_instruction_sets() noexcept { return 1; }
#endif

}  // namespace plimsoll::internal
