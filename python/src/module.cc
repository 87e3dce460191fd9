// The extension module plimsoll._plimsoll; the package around it is in python/plimsoll.
#include <nanobind/stl/map.h>

#include <ctime>
#include <map>

#include "common.h"
#include "plimsoll/base/interrupt.h"

namespace binding {

const char* Module::text_of(const char* name, const char* otherwise) const {
  static const auto& texts = *new std::map<std::string, std::string>(
      nb::cast<std::map<std::string, std::string>>(nb::module_::import_("plimsoll._documentation").attr("texts")()));
  const auto found = texts.find(prefix_ + name);
  return found == texts.end() ? otherwise : found->second.c_str();
}

}  // namespace binding

NB_MODULE(_plimsoll, root) {
  using namespace binding;
  Module m(root);
  m.doc() = "The library plimsoll, as Python's own types and functions.";
  nb::set_leak_warnings(false);  // Tensors that live when the interpreter ends are not leaks.
  m.attr("T") = nb::module_::import_("typing").attr("TypeVar")("T");
  bind_errors(m);
  bind_dtypes(m);
  bind_tensor(m);
  bind_exchange(m);
  bind_functions(m);
  bind_more_functions(m);
  bind_running(m);
  bind_float_bits(m);
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
  pl::set_interrupt_check(&check_signals);
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
