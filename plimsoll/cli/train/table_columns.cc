#include "plimsoll/cli/train/table_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/make_directories.h"
#include "plimsoll/model/data/plural.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr std::int64_t kMostSteps = 1'000'000;

bool is_in(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

void read_scales_and_windows(const nlohmann::json& document, TableColumns& columns) {
  columns.dates = document.at("dates");
  for (const auto& each : document.at("scales"))
    columns.scales.push_back({each.at("column"), each.at("mean"), each.at("deviation")});
  columns.look_back = document.at("look_back");
  columns.horizon = document.at("horizon");
}

}  // namespace

TableColumns TableColumns::of(const CsvTable& table) {
  return {.names = table.column_names,
          .has_header = table.has_header,
          .features = table.feature_names,
          .targets = table.target_names,
          .categories = table.categories};
}

std::string TableColumns::to_json() const {
  // A reader that does not know scales and windows must refuse such a file.
  const bool plain = scales.empty() && dates.empty() && look_back == 0;
  nlohmann::ordered_json document = {{"format", "plimsoll-columns"}, {"version", plain ? 1 : 2}, {"names", names},
                                     {"has_header", has_header},     {"features", features},     {"targets", targets}};
  document["categories"] = nlohmann::ordered_json::array();
  for (const auto& [column, texts] : categories)
    document["categories"].push_back({{"column", column}, {"values", texts}});
  if (!plain) {
    document["dates"] = dates;
    document["scales"] = nlohmann::ordered_json::array();
    for (const CsvScale& scale : scales)
      document["scales"].push_back({{"column", scale.column}, {"mean", scale.mean}, {"deviation", scale.deviation}});
    document["look_back"] = look_back;
    document["horizon"] = horizon;
  }
  try {
    return strict_json_text(document, 1) + "\n";
  } catch (const nlohmann::json::exception&) {
    throw InvalidArgument("train: names or categories of the CSV are not UTF-8; convert the file");
  }
}

void TableColumns::save(const std::string& folder) const {
  const std::string text = to_json();
  make_directories(folder);
  AtomicFile file(std::filesystem::path(folder) / kFile);
  file.write(text);
  file.commit();
}

TableColumns TableColumns::load(const std::string& path) {
  TableColumns columns;
  try {
    const auto document = parse_json(read_file(path, kMostBytes));
    const bool plain = document.at("version") == 1;
    if (document.at("format") != "plimsoll-columns" || (!plain && document.at("version") != 2))
      throw Corruption(fmt::format("{}: is not a description of columns that this version knows", path));
    columns.names = document.at("names");
    columns.has_header = document.at("has_header");
    columns.features = document.at("features");
    columns.targets = document.at("targets");
    for (const auto& each : document.at("categories"))
      columns.categories.emplace_back(each.at("column"), each.at("values"));
    if (!plain) read_scales_and_windows(document, columns);
  } catch (const nlohmann::json::exception& error) {
    throw Corruption(fmt::format("{}: is not a description of columns: {}", path, error.what()));
  }
  for (const auto* used : {&columns.features, &columns.targets})
    for (const std::string& name : *used)
      if (!is_in(columns.names, name))
        throw Corruption(fmt::format("{}: column \"{}\" is used, but not among the names", path, name));
  if (columns.look_back < 0 || columns.horizon < 1 || columns.look_back > kMostSteps || columns.horizon > kMostSteps)
    throw Corruption(fmt::format("{}: look_back is {}, horizon {}", path, columns.look_back, columns.horizon));
  if (columns.features.empty()) throw Corruption(fmt::format("{}: has no features", path));
  return columns;
}

CsvOptions TableColumns::options_for(const std::string& path, std::optional<bool> header, bool with_targets) const {
  std::vector<std::string> first = load_csv_first_line(path);
  for (std::string& field : first) field = trimmed(field);
  const auto has = [&](const std::string& name) { return is_in(first, name); };
  const bool named = has_header && std::all_of(features.begin(), features.end(), has);
  CsvOptions options{
      .header = header, .all_features = !with_targets, .look_back = look_back, .horizon = with_targets ? horizon : 0};
  if (named && header.value_or(true)) {
    options.features = features;
    if (with_targets) options.targets = targets;
    options.categories = categories;
    options.dates = dates;
    options.scales = scales;
    options.header = true;
    return options;
  }
  // By position: with the columns of the training data, or only the inputs.
  const bool whole = first.size() == names.size(), inputs_only = !with_targets && first.size() == features.size();
  if (!whole && !inputs_only) {
    const auto missing = std::find_if_not(features.begin(), features.end(), has);
    throw InvalidArgument(fmt::format(
        "{}: has {}, the training data {}{}; give it the same columns", path, plural(first.size(), "column"),
        names.size(),
        has_header && missing != features.end() ? fmt::format("; \"{}\" is not in the first line", *missing) : ""));
  }
  if (!options.header && has_header) options.header = false;
  const auto place_of = [&](const std::string& name) {
    const auto& order = whole ? names : features;
    return std::to_string(std::find(order.begin(), order.end(), name) - order.begin());
  };
  for (const std::string& name : features) options.features.push_back(place_of(name));
  if (with_targets)
    for (const std::string& name : targets) options.targets.push_back(place_of(name));
  for (const auto& [column, texts] : categories)
    if (is_in(features, column) || with_targets) options.categories.emplace_back(place_of(column), texts);
  for (const std::string& name : dates) options.dates.push_back(place_of(name));
  for (const CsvScale& scale : scales)
    if (is_in(features, scale.column) || with_targets)
      options.scales.push_back({place_of(scale.column), scale.mean, scale.deviation});
  return options;
}

std::vector<CsvScale> TableColumns::target_scales() const {
  std::vector<CsvScale> result;
  for (const std::string& target : targets) {
    const auto found =
        std::find_if(scales.begin(), scales.end(), [&](const CsvScale& scale) { return scale.column == target; });
    result.push_back(found == scales.end() ? CsvScale{target} : *found);
  }
  const bool any = std::any_of(result.begin(), result.end(),
                               [](const CsvScale& scale) { return scale.mean != 0 || scale.deviation != 1; });
  return any ? result : std::vector<CsvScale>();
}

std::vector<std::string> TableColumns::classes() const {
  if (targets.size() == 1)
    for (const auto& [column, texts] : categories)
      if (column == targets[0]) return texts;
  return {};
}

}  // namespace plimsoll::internal
