// The extension module plimsoll._plimsoll; the package around it is in python/plimsoll.
#include <ctime>

#include "common.h"

NB_MODULE(_plimsoll, m) {
  using namespace binding;
  m.doc() = "The library plimsoll, as Python's own types and functions.";
  nb::set_leak_warnings(false);  // Tensors that live when the interpreter ends are not leaks.
  m.attr("T") = nb::module_::import_("typing").attr("TypeVar")("T");
  bind_errors(m);
  bind_dtypes(m);
  bind_tensor(m);
  bind_exchange(m);
  bind_functions(m);
  bind_more_functions(m);
  bind_collections(m);
  bind_scopes(m);
  bind_memory(m);
  bind_config(m);
  bind_gradients(m);
  bind_graphs(m);
  bind_data(m);
  bind_layers(m);
  bind_training(m);
  bind_models(m);
  bind_files(m);
  bind_interchange(m);
  bind_live(m);
  bind_distributed(m);
  m.def("note_fork", [] { forked = true; });
  m.def(
      "time_product",
      [](const pl::Tensor& a, const pl::Tensor& b, int rounds) {
        return unlocked([&] {
          const auto now = [] {
            timespec time;
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
            return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
          };
          const double begin = now();
          for (int i = 0; i < rounds; ++i) pl::matmul(a, b);
          return (now() - begin) / rounds;
        });
      },
      "Nanoseconds of this thread that a product by the library alone takes, for python/benchmarks/cost.py.");
}
