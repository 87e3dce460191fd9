#include "plimsoll/io/object_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "plimsoll/base/error.h"
#include "plimsoll/base/wire.h"

namespace plimsoll {
namespace {

constexpr std::string_view kAttribute = "VARIABLE_VALUE";

std::string escaped(std::string_view name) {
  std::string out;
  for (const char c : name) out += c == '.' ? ".." : c == '/' ? ".S" : std::string(1, c);
  return out;
}

struct ObjectNode {
  std::map<std::string, std::size_t> children;
  const ObjectVariable* variable = nullptr;
};

[[noreturn]] void refuse(const ObjectVariable& variable, const char* what) {
  throw InvalidArgument(fmt::format("object graph: variable \"{}\": {}", fmt::join(variable.path, "\" \""), what));
}

std::vector<ObjectNode> build_nodes(std::span<const ObjectVariable> variables) {
  std::vector<ObjectNode> nodes(1);
  for (const ObjectVariable& variable : variables) {
    if (variable.path.empty()) refuse(variable, "it has no path");
    std::size_t at = 0;
    for (const std::string& name : variable.path) {
      if (name.empty()) refuse(variable, "a part of its path is empty");
      if (nodes[at].variable) refuse(variable, "its path leads through another variable");
      const auto [child, is_new] = nodes[at].children.emplace(name, nodes.size());
      at = child->second;
      if (is_new) nodes.emplace_back();
    }
    if (nodes[at].variable || !nodes[at].children.empty()) refuse(variable, "its path is taken");
    nodes[at].variable = &variable;
  }
  return nodes;
}

}  // namespace

std::string object_key(const ObjectPath& path) {
  std::string key;
  for (const std::string& name : path) key += escaped(name) + "/";
  return key + ".ATTRIBUTES/" + std::string(kAttribute);
}

std::string make_object_graph(std::span<const ObjectVariable> variables) {
  WireWriter graph, has_values;
  has_values.integer(1, 1);
  for (const ObjectNode& node : build_nodes(variables)) {
    WireWriter object;
    for (const auto& [name, id] : node.children) {
      WireWriter child;
      child.integer(1, static_cast<std::int64_t>(id));
      child.text(2, name);
      object.message(1, child);
    }
    if (node.variable) {
      WireWriter attribute;
      attribute.text(1, kAttribute);
      attribute.text(2, node.variable->full_name);
      attribute.text(3, object_key(node.variable->path));
      object.message(2, attribute);
    }
    object.message(5, has_values);
    graph.message(1, object);
  }
  return graph.bytes();
}

std::vector<ObjectName> parse_object_graph(std::string_view graph) {
  std::vector<ObjectName> names;
  try {
    for (WireReader in(graph); in.next();) {
      if (in.field() != 1) continue;
      for (WireReader object(in.bytes()); object.next();) {
        if (object.field() != 2) continue;
        std::string fields[4];
        for (WireReader attribute(object.bytes()); attribute.next();)
          if (attribute.field() <= 3) fields[attribute.field()] = attribute.bytes();
        if (fields[1] == kAttribute) names.push_back({fields[2], fields[3]});
      }
    }
  } catch (const WireError& error) {
    throw Corruption(fmt::format("object graph of {} bytes: it is damaged: {}", graph.size(), error.what()));
  }
  return names;
}

std::vector<ObjectName> read_object_graph(const BundleReader& reader) {
  if (!reader.contains(kObjectGraphKey)) return {};
  const std::vector<std::string> strings = reader.read_strings(kObjectGraphKey);
  return strings.empty() ? std::vector<ObjectName>() : parse_object_graph(strings[0]);
}

}  // namespace plimsoll
