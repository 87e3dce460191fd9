// The extension module plimsoll._plimsoll; the package around it is in python/plimsoll.
#include "common.h"

NB_MODULE(_plimsoll, m) {
  using namespace binding;
  m.doc() = "The library plimsoll, as Python's own types and functions.";
  nb::set_leak_warnings(false);  // Tensors that live when the interpreter ends are no leak.
  m.attr("T") = nb::module_::import_("typing").attr("TypeVar")("T");
  bind_errors(m);
  bind_dtypes(m);
  bind_tensor(m);
  bind_exchange(m);
  bind_functions(m);
  bind_more_functions(m);
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
  m.def("note_fork", [] { forked = true; });
}
