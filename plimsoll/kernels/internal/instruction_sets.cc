#include "plimsoll/kernels/internal/instruction_sets.h"

namespace plimsoll {

int num_instruction_sets() noexcept {
#if defined(__x86_64__)
  const bool has_avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has_avx512 ? 3 : has_avx2 ? 2 : 1;
#else
  return 1;
#endif
}

}  // namespace plimsoll
