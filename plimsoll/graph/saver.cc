#include "plimsoll/graph/saver.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/io/object_graph.h"

namespace plimsoll {
namespace {

// What is saved or restored, by name and spec. Throws NotFound, InvalidArgument.
std::vector<CheckpointSpec> chosen(const Session& session, const std::vector<std::string>& names, const char* where) {
  std::vector<CheckpointSpec> specs;
  {
    const GraphState& graph = *session.graph().state();
    const auto locked = graph.lock();
    for (const NodeVariable& variable : graph.variables())
      if (names.empty() || std::find(names.begin(), names.end(), variable.name) != names.end())
        specs.push_back({variable.name, variable.spec.dtype, variable.spec.shape});
  }
  if (specs.empty() && names.empty())
    throw FailedPrecondition(fmt::format("{}: the session's graph has no variables", where));
  std::vector<std::string> found;
  for (const CheckpointSpec& spec : specs) found.push_back(spec.name);
  std::sort(found.begin(), found.end());
  if (const auto twice = std::adjacent_find(found.begin(), found.end()); twice != found.end())
    throw InvalidArgument(
        fmt::format("{}: two variables are named \"{}\"; give variables names of their own", where, *twice));
  std::vector<std::string> unknown;
  for (const std::string& name : names)
    if (!std::binary_search(found.begin(), found.end(), name)) unknown.push_back(name);
  if (!unknown.empty())
    throw NotFound(fmt::format("{}: the session's graph has no variable \"{}\"", where, fmt::join(unknown, "\", \"")));
  return specs;
}

// The key of each variable: its name; in an object-based checkpoint the key of the variable with that full name.
std::vector<std::string> keys_of(const BundleReader& reader, const std::vector<CheckpointSpec>& specs) {
  std::unordered_map<std::string, std::string> by_full_name;
  if (reader.contains(kObjectGraphKey))
    for (ObjectName& object : read_object_graph(reader))
      by_full_name.emplace(std::move(object.full_name), std::move(object.key));
  std::vector<std::string> keys;
  for (const CheckpointSpec& spec : specs) {
    const auto found = by_full_name.find(spec.name);
    keys.push_back(reader.contains(spec.name) || found == by_full_name.end() ? spec.name : found->second);
  }
  return keys;
}

}  // namespace

Saver::Saver(const SaverOptions& options) : options_(options), keeper_({.max_to_keep = options.max_to_keep}) {}

std::string Saver::save(Session& session, const std::string& prefix, std::optional<std::int64_t> step) {
  const std::vector<CheckpointSpec> specs = chosen(session, options_.variables, "save");
  std::set<std::string> names;
  for (const CheckpointSpec& spec : specs) names.insert(spec.name);
  return keeper_.save(prefix, step,
                      session.variable_values([&](const std::string& name) { return names.contains(name); }));
}

void Saver::restore(Session& session, const std::string& prefix) {
  std::vector<CheckpointSpec> specs = chosen(session, options_.variables, "restore");
  const BundleReader reader(prefix);
  const std::vector<std::string> keys = keys_of(reader, specs);
  std::unordered_map<std::string, std::string> key_of_name;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    key_of_name.emplace(specs[i].name, keys[i]);
    specs[i].name = keys[i];
  }
  const std::vector<std::string> extra = check_checkpoint_fits(reader, specs, {.exact = options_.exact});
  if (!extra.empty())
    log_message(LogLevel::info,
                fmt::format("restore: checkpoint \"{}\" has {} tensors that no variable asked for, {} the first",
                            prefix, extra.size(), extra[0]));
  session.fill_variables([&](const std::string& name) { return key_of_name.contains(name); },
                         [&](std::span<const RestoreTarget> memory) {
                           std::vector<RestoreTarget> targets(memory.begin(), memory.end());
                           for (RestoreTarget& target : targets) target.name = key_of_name.at(target.name);
                           restore_checkpoint(reader, targets);
                         });
}

}  // namespace plimsoll
