// The objects of an HDF5 file: groups in groups, datasets, and the attributes with text, as a tree in memory.
//
//   Hdf5Objects objects = read_hdf5_objects({file, 0, file.size()});
//   for (const Hdf5Object& each : objects.all) each.path;  each.dataset;
//
// Each object, tree node and block is read once, so that files with cycles end, and memory is bounded: 2^18 objects, 64
// MiB of names and text. Throws Corruption with the offset, Unsupported beyond these bounds and for features that
// Keras' files do not use (large groups and attributes in the newest form, links to other files).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/io/internal/hdf5_messages.h"

namespace plimsoll::internal {

struct Hdf5Object {
  struct Dataset {
    Hdf5Type type;
    std::optional<Shape> shape;  // Empty: without elements.
    Hdf5Layout layout;
    std::vector<Hdf5Filter> filters;
  };
  std::string path;  // "layers/dense/vars/0"; "" is the root.
  std::uint64_t address = 0;
  std::optional<Dataset> dataset;                              // Empty for a group.
  std::map<std::string, std::vector<std::string>> attributes;  // Those with text: a string, or a list of strings.
};

std::vector<Hdf5Object> read_hdf5_objects(const Hdf5Bytes& bytes);  // The root first, each after its group.

}  // namespace plimsoll::internal
