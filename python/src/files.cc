// Files: safetensors, npz, npy, Layers models.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>

#include "models.h"

namespace binding {

void bind_files(Module& m) {
  using Path = std::filesystem::path;
  m.def(
      "save_safetensors",
      [](const Path& path, nb::handle tree, const std::map<std::string, std::string>& metadata) {
        const pl::TensorTree tensors = to_tree(tree);
        unlocked([&] {
          pl::save_safetensors(path, tensors, metadata);
          return 0;
        });
      },
      nb::arg("path"), nb::arg("tree"), nb::arg("metadata") = std::map<std::string, std::string>(),
      nb::sig(
          "def save_safetensors(path: str | os.PathLike[str], tree: object, metadata: dict[str, str] = {}) -> None"));
  m.def(
      "load_safetensors",
      [](const Path& path) { return wrap_tree(unlocked([&] { return pl::load_safetensors(path); })); }, nb::arg("path"),
      nb::sig("def load_safetensors(path: str | os.PathLike[str]) -> typing.Any"));
  m.def(
      "save_npz",
      [](const Path& path, nb::handle tree) {
        const pl::TensorTree tensors = to_tree(tree);
        unlocked([&] {
          pl::save_npz(path, tensors);
          return 0;
        });
      },
      nb::arg("path"), nb::arg("tree"), nb::sig("def save_npz(path: str | os.PathLike[str], tree: object) -> None"));
  m.def(
      "load_npz", [](const Path& path) { return wrap_tree(unlocked([&] { return pl::load_npz(path); })); },
      nb::arg("path"), nb::sig("def load_npz(path: str | os.PathLike[str]) -> typing.Any"));
  m.def(
      "load_layers_model",
      [](const std::string& path, bool weights) {
        return unlocked([&] { return pl::load_layers_model(path, {.weights = weights}); });
      },
      nb::arg("path"), nb::arg("weights") = true);
  m.def(
      "save_layers_model",
      [](const pl::Model& model, const std::string& directory, bool include_optimizer) {
        unlocked([&] {
          pl::save_layers_model(model, directory, {.include_optimizer = include_optimizer});
          return 0;
        });
      },
      nb::arg("model"), nb::arg("directory"), nb::arg("include_optimizer") = false);
  m.def(
      "load_json_tensors",
      [](const std::string& path) { return wrap_tensors(unlocked([&] { return pl::load_json_tensors(path); })); },
      nb::arg("path"), nb::sig("def load_json_tensors(path: str) -> list[Tensor]"));
}

}  // namespace binding
