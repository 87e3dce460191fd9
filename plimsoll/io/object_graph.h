// Object graphs: how TensorFlow 2 and Keras name the tensors of a checkpoint, by the objects that hold them.
//
//   object_key({"layer_with_weights-0", "kernel"})     // "layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE"
//   writer.add(object_key(path), tensor);
//   writer.add_strings(kObjectGraphKey, {}, {&graph, 1});     // graph = make_object_graph(variables)
//   for (const ObjectName& name : read_object_graph(reader)) ...                    // full name "dense/kernel" and key
//
// Thread safety: pure functions. Cost: proportional to the number of variables.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/io/bundle.h"

namespace plimsoll {

inline constexpr std::string_view kObjectGraphKey = "_CHECKPOINTABLE_OBJECT_GRAPH";

// The names of the attributes that lead from the root to a variable.
using ObjectPath = std::vector<std::string>;

struct ObjectVariable {
  ObjectPath path;
  std::string full_name;  // "dense/kernel", as TensorFlow 1 would call it.
};

// Escapes dots and slashes within a name.
PLIMSOLL_API std::string object_key(const ObjectPath& path);

// Throws InvalidArgument for an empty path, an empty name, and a path that appears twice or leads through a variable.
PLIMSOLL_API std::string make_object_graph(std::span<const ObjectVariable> variables);

struct ObjectName {
  std::string full_name;  // "" when the writer stored none.
  std::string key;
};

// The names of every variable of an object-based checkpoint, in the order of its objects; empty for a name-based one.
// Throws Corruption.
PLIMSOLL_API std::vector<ObjectName> read_object_graph(const BundleReader& reader);
PLIMSOLL_API std::vector<ObjectName> parse_object_graph(std::string_view graph);

}  // namespace plimsoll
