#include "plimsoll/kernels/internal/loops.h"

namespace plimsoll {

#if defined(__x86_64__)
bool has_avx2() noexcept {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}
bool has_avx512() noexcept {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#else
bool has_avx2() noexcept { return false; }
bool has_avx512() noexcept { return false; }
#endif

const Loops& best_loops() noexcept {
  return has_avx512() ? loops_avx512() : has_avx2() ? loops_avx2() : loops_baseline();
}

}  // namespace plimsoll
