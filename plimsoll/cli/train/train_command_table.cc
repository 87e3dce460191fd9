#include "plimsoll/cli/train/train_command_table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>

#include "plimsoll/base/error.h"
#include "plimsoll/cli/option_checks.h"
#include "plimsoll/model/data/csv_field.h"
#include "plimsoll/model/data/plural.h"

namespace plimsoll::internal {
namespace {

bool is_in(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string joined(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i ? ", " : "") + names[i];
  return names.size() > kShown ? text + fmt::format(", and {} more", names.size() - kShown) : text;
}

// A column by its name, or by its number from 1.
std::size_t find_column(const CsvLook& look, const std::string& name, const std::string& path) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < look.columns.size(); ++i) {
    if (look.has_header && look.columns[i].name == name) return i;
    names.push_back(look.has_header ? look.columns[i].name : std::to_string(i + 1));
  }
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size() && number >= 1 && number <= look.columns.size())
    return number - 1;
  throw NotFound(fmt::format("{}: there is no column \"{}\"; there are: {}{}", path, name, joined(names),
                             look.has_header ? "" : " (the file has no header; columns count from 1)"));
}

// For people: numbers from 1 where there are no names.
std::vector<std::string> shown(const TableColumns& columns, std::vector<std::string> names) {
  if (!columns.has_header)
    for (std::string& name : names) name = "column " + std::to_string(std::stoul(name) + 1);
  return names;
}

}  // namespace

// Numbers of columns.
struct TrainingTable::Choice {
  std::vector<std::size_t> features, targets, left_out_dates;
  std::vector<std::size_t> usable;  // Neither ignored nor dates.

  Choice(const std::string& path, const CsvLook& look, const DataOptions& options, const ModelEnds* model) {
    const auto find = [&](const std::string& name) { return find_column(look, name, path); };
    for (const std::string& name : options.targets) targets.push_back(find(name));
    for (const std::string& name : options.features) features.push_back(find(name));
    std::vector<std::size_t> ignored;
    for (const std::string& name : options.ignore) ignored.push_back(find(name));
    for (const std::size_t i : ignored)
      if (has(features, i) || has(targets, i))
        throw InvalidArgument(
            fmt::format("{}: --ignore leaves out a column that is also named as one to use; name it once", path));
    for (const std::size_t i : features)
      if (has(targets, i) && options.look_back == 0)
        throw InvalidArgument(
            fmt::format("{}: column \"{}\" is both an input and a target, which teaches nothing; name it once", path,
                        look.has_header ? look.columns[i].name : std::to_string(i + 1)));
    for (std::size_t i = 0; i < look.columns.size(); ++i) {
      if (has(ignored, i)) continue;
      if (look.columns[i].kind != CsvKind::kDate)
        usable.push_back(i);
      else if (!has(features, i) && !has(targets, i))
        left_out_dates.push_back(i);
    }
    const std::int64_t steps = std::max<std::int64_t>(options.look_back, 1);
    const std::int64_t inputs = model ? per(elements_of(model->inputs[0]), steps) : kUnknownSize;
    const std::int64_t outputs = model ? per(elements_of(model->outputs[0]), options.horizon) : 1;
    choose_targets(inputs, outputs, options.look_back > 0);
    if (!features.empty()) return;
    const bool past_of_targets = options.look_back > 0 && inputs != static_cast<std::int64_t>(others());
    for (const std::size_t i : usable)
      if (past_of_targets || !has(targets, i)) features.push_back(i);
  }

  static bool has(const std::vector<std::size_t>& list, std::size_t i) {
    return std::find(list.begin(), list.end(), i) != list.end();
  }

 private:
  static std::int64_t per(std::int64_t elements, std::int64_t steps) {
    return elements == kUnknownSize || elements % steps != 0 ? kUnknownSize : elements / steps;
  }
  std::size_t others() const {
    return static_cast<std::size_t>(
        std::count_if(usable.begin(), usable.end(), [&](std::size_t i) { return !has(targets, i); }));
  }
  // The last columns: as many as the model has outputs if the others are then its inputs, otherwise one.
  void choose_targets(std::int64_t inputs, std::int64_t outputs, bool is_series) {
    std::vector<std::size_t> rest;
    for (const std::size_t i : usable)
      if (is_series || !has(features, i)) rest.push_back(i);
    if (!targets.empty() || rest.size() < (is_series || !features.empty() ? 1u : 2u)) return;
    const std::int64_t expected = features.empty() ? inputs + outputs : outputs;
    const bool each = !is_series && outputs > 1 && expected == static_cast<std::int64_t>(rest.size());
    targets.assign(rest.end() - (each ? outputs : 1), rest.end());
  }
};

const char* DataOptions::choose_columns() const {
  if (!targets.empty()) return "--target";
  if (!features.empty()) return "--features";
  if (!ignore.empty()) return "--ignore";
  if (!categorical.empty()) return "--categorical";
  if (look_back > 0) return "--look-back";
  return standardize != "auto" ? "--standardize" : nullptr;
}

const char* DataOptions::differs_from(const TableColumns& known) const {
  // Names in known.names; columns count from 1 in options, and from 0 in files without a header.
  const auto named = [&](std::vector<std::string> list) {
    for (std::string& name : list) {
      std::size_t number = 0;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
      const bool is_number = error == std::errc() && end == name.data() + name.size();
      if (is_number && number >= 1 && number <= known.names.size() && !(known.has_header && is_in(known.names, name)))
        name = known.names[number - 1];
    }
    std::sort(list.begin(), list.end());
    return list;
  };
  const auto sorted = [](std::vector<std::string> list) {
    std::sort(list.begin(), list.end());
    return list;
  };
  if (!targets.empty() && named(targets) != sorted(known.targets)) return "--target";
  if (!features.empty() && named(features) != sorted(known.features)) return "--features";
  for (const std::string& name : named(ignore))
    if (is_in(known.features, name) || is_in(known.targets, name)) return "--ignore";
  for (const std::string& name : named(categorical))
    if (std::none_of(known.categories.begin(), known.categories.end(),
                     [&](const auto& column) { return column.first == name; }))
      return "--categorical";
  if (look_back > 0 && look_back != known.look_back) return "--look-back";
  if (horizon > 1 && horizon != known.horizon) return "--horizon";
  if (standardize != "auto" && (standardize == "yes") == known.scales.empty()) return "--standardize";
  return nullptr;
}

ModelEnds::ModelEnds(const Model& model)
    : inputs(model.input_shapes()),
      outputs(model.output_shapes()),
      input_dtypes(model.input_dtypes()),
      input_names(model.input_names()),
      output_names(model.output_names()) {}

std::int64_t elements_of(const Shape& with_batch) {
  std::int64_t count = 1;
  for (std::size_t axis = 1; axis < with_batch.rank(); ++axis) {
    if (with_batch[axis] == kUnknownSize) return kUnknownSize;
    count *= with_batch[axis];
  }
  return count;
}

CsvFile::Progress reading_progress(const std::string& path, bool quiet) {
  if (quiet || isatty(STDERR_FILENO) == 0) return {};
  return [path, begin = std::chrono::steady_clock::now(), last = -1](double share) mutable {
    const int percent = static_cast<int>(share * 100);
    if (percent == last || std::chrono::steady_clock::now() - begin < std::chrono::seconds(1)) return;
    last = percent;
    std::fprintf(stderr, "\r\033[Kreading %s: %d%%%s", path.c_str(), percent, percent >= 99 ? "\r\033[K" : "");
    std::fflush(stderr);
  };
}

TrainingTable::TrainingTable(const std::string& path, const DataOptions& options, const TableColumns& known,
                             const ModelEnds* model)
    : path_(path), quiet_(options.quiet), columns_(known) {
  if (model && (model->inputs.size() != 1 || model->outputs.size() != 1))
    throw InvalidArgument(fmt::format("{}: the model has {} and {}; a CSV has one table, use an npz", path,
                                      plural(model->inputs.size(), "input"), plural(model->outputs.size(), "output")));
  CsvOptions csv;
  if (known.is_set()) {
    csv = known.options_for(path, options.has_header(), true);
  } else {
    std::vector<std::string> asked = options.targets;
    for (const auto* names : {&options.features, &options.ignore, &options.categorical})
      asked.insert(asked.end(), names->begin(), names->end());
    const CsvLook look = look_at_csv(path, options.has_header(), asked);
    const Choice choice(path, look, options, model);
    const auto name = [&](std::size_t i) { return look.columns[i].name; };
    for (const std::size_t i : choice.targets) csv.targets.push_back(name(i));
    for (const std::size_t i : choice.features) csv.features.push_back(name(i));
    for (const std::size_t i : choice.left_out_dates) left_out_.push_back(name(i));
    for (const std::string& each : options.categorical) csv.categorical.push_back(name(find_column(look, each, path)));
    for (std::size_t i = 0; i < look.columns.size(); ++i) {
      const bool used = Choice::has(choice.features, i) || Choice::has(choice.targets, i);
      if (used && look.columns[i].kind == CsvKind::kText && !is_in(csv.categorical, name(i)))
        csv.categorical.push_back(name(i));
      if (used && look.columns[i].kind == CsvKind::kDate) csv.dates.push_back(name(i));
    }
    if (csv.targets.empty() || csv.features.empty())
      throw InvalidArgument(fmt::format(
          "{}: has {} to train with; training takes one of inputs and one of targets at least{}", path,
          choice.usable.size() == 1 ? "one column" : plural(choice.usable.size(), "column"),
          look.columns.size() == 1 && look.columns[0].kind == CsvKind::kText ? " (columns are separated by commas)"
                                                                             : ""));
    csv.header = look.has_header;
    csv.look_back = options.look_back;
    csv.horizon = options.horizon;
  }
  csv.missing = options.missing;
  file_.emplace(path, csv, reading_progress(path, quiet_));
  if (file_->num_rows() == 0) throw InvalidArgument(fmt::format("train: {} has no rows with values", path));
  if (!known.is_set()) require_categories(options);
  const std::int64_t outputs = model ? elements_of(model->outputs[0]) : 1;
  one_hot_ = csv.look_back == 0 && outputs > 1 && outputs == static_cast<std::int64_t>(csv.targets.size());
  if (!known.is_set()) {
    columns_ = TableColumns::of(file_->described());
    columns_.dates = csv.dates;
    columns_.look_back = csv.look_back;
    columns_.horizon = csv.horizon;
  }
  if (columns_.look_back > 0 && !left_out_.empty()) require_order(left_out_[0]);
  split(options.validation_split, options.seed);
}

// Text that nobody called categories may be numbers that are written in another way, dates, or names of rows: to learn
// them by heart would be silently wrong.
void TrainingTable::require_categories(const DataOptions& options) const {
  const CsvTable table = file_->described();
  for (const auto& [column, texts] : table.categories) {
    const std::string number = table.has_header ? "" : std::to_string(std::stoul(column) + 1);
    if (is_in(options.categorical, column) || (!number.empty() && is_in(options.categorical, number))) continue;
    const std::string named = table.has_header ? fmt::format("\"{}\"", column) : number;
    const auto other =
        std::find_if(texts.begin(), texts.end(), [](const auto& text) { return !number_in<double>(text); });
    const auto numbers = static_cast<std::size_t>(std::count_if(
        texts.begin(), texts.end(), [](const auto& text) { return number_in<double>(text).has_value(); }));
    if (2 * numbers > texts.size() && other != texts.end())
      throw InvalidArgument(fmt::format(
          "{}: column {} has {} and \"{}\", which is none; correct it, leave the column out with --ignore, or "
          "name it with --categorical if its numbers are names",
          path_, named, plural(numbers, "number"), shown_field(*other)));
    constexpr std::size_t kFewRows = 20;
    if (file_->num_rows() > kFewRows && 10 * texts.size() > 9 * file_->num_rows())
      throw InvalidArgument(fmt::format(
          "{}: column {} has another text in almost every row (\"{}\"), from which nothing can be learnt; leave it out "
          "with "
          "--ignore, or name it with --categorical (dates are read as 2026-01-31, 31.01.2026 or 01/31/2026)",
          path_, named, shown_field(*texts.begin())));
  }
}

// Windows over rows whose dates are out of order would be meaningless.
void TrainingTable::require_order(const std::string& date) const {
  const CsvOptions only{
      .features = {date}, .header = columns_.has_header, .missing = "nan", .all_features = true, .dates = {date}};
  if (CsvFile(path_, only, reading_progress(path_, quiet_)).measure()[0].ascends) return;
  throw InvalidArgument(
      fmt::format("{}: its rows are not in the order of time (column \"{}\"); sort them, the oldest first, or give "
                  "--ignore {} if their order is right",
                  path_, date, date));
}

void TrainingTable::split(double share, std::uint64_t seed) {
  const auto rows = static_cast<std::int64_t>(file_->num_rows());
  if (share > 0 && columns_.look_back > 0) {
    const auto cut = rows - static_cast<std::int64_t>(static_cast<double>(rows) * share);
    train_.end = cut;
    validation_ = CsvPart{.begin = std::max<std::int64_t>(cut - columns_.look_back, 0)};
  } else if (share > 0) {
    train_ = {.to = 1 - share, .seed = seed};
    validation_ = CsvPart{.from = 1 - share, .seed = seed};
  }
  const auto require = [&](const CsvPart& part, const char* what) {
    if (file_->num_examples(part) > 0) return;
    throw InvalidArgument(
        columns_.look_back > 0
            ? fmt::format("train: {} has no examples{}: {} of {} are fewer than a look-back of {} and a horizon of {}",
                          path_, what, plural(static_cast<std::size_t>(rows), "row"), path_, columns_.look_back,
                          columns_.horizon)
            : fmt::format("train: {} has no examples{}", path_, what));
  };
  require(train_, validation_ ? " to train with" : "");
  if (validation_) require(*validation_, " for validation");
}

const std::vector<CsvStatistics>& TrainingTable::statistics() const {
  if (!statistics_) statistics_ = file_->measure(train_);
  return *statistics_;
}

PlainModel TrainingTable::plain_model(bool numbers) const {
  const auto features = static_cast<std::int64_t>(columns_.features.size());
  PlainModel plain{.kind = columns_.look_back > 0 ? "lstm" : "dense", .inputs = {}, .outputs = 1, .classes = false};
  if (columns_.look_back > 0) plain.inputs.push_back(columns_.look_back);
  plain.inputs.push_back(features);
  plain.outputs = columns_.horizon * static_cast<std::int64_t>(columns_.targets.size());
  if (columns_.look_back == 0) plain.outputs = static_cast<std::int64_t>(columns_.targets.size());
  if (columns_.targets.size() != 1 || plain.outputs != 1) return plain;
  const CsvStatistics& target = statistics().back();
  const bool few = target.is_whole && target.smallest == 0 && target.largest >= 1 && target.largest <= 9;
  if (!target.is_category && (numbers || !few || columns_.look_back > 0)) return plain;
  plain.classes = true;
  plain.outputs = target.is_category ? std::max<std::int64_t>(static_cast<std::int64_t>(columns_.classes().size()), 2)
                                     : static_cast<std::int64_t>(target.largest) + 1;
  return plain;
}

void TrainingTable::require_fit(const ModelEnds& model, bool labels) const {
  const std::int64_t steps = std::max<std::int64_t>(columns_.look_back, 1);
  const std::int64_t features = static_cast<std::int64_t>(columns_.features.size()) * steps;
  const std::int64_t wanted = elements_of(model.inputs[0]), outputs = elements_of(model.outputs[0]);
  if (wanted == kUnknownSize || wanted == features) {
    const std::int64_t ahead = columns_.look_back > 0 ? columns_.horizon : 1;
    const std::int64_t targets = labels ? 1 : static_cast<std::int64_t>(columns_.targets.size()) * ahead;
    if (labels ? columns_.targets.size() == 1 : outputs == kUnknownSize || outputs == targets) return;
    throw InvalidArgument(
        fmt::format("{}: {} of targets make {}, the model gives {} ({}); say which are targets with --target", path_,
                    plural(columns_.targets.size(), "column"), plural(static_cast<std::size_t>(targets), "number"),
                    labels ? "one class" : std::to_string(outputs), model.outputs[0].to_string()));
  }
  if (columns_.look_back > 0)
    throw InvalidArgument(fmt::format(
        "{}: {} of {} make inputs of {} numbers, the model takes {} ({}); choose columns with --features, or another "
        "--look-back",
        path_, plural(static_cast<std::size_t>(columns_.look_back), "row"), plural(columns_.features.size(), "column"),
        features, wanted, model.inputs[0].to_string()));
  throw InvalidArgument(
      fmt::format("{}: has {} besides {} of targets, the model takes {}; say which are targets with "
                  "--target, and which inputs with --features",
                  path_, plural(columns_.features.size(), "column"), columns_.targets.size(), wanted));
}

void TrainingTable::require_shares() const {
  for (const CsvStatistics& each : statistics())
    if (each.is_target && (each.is_category || each.smallest < 0 || each.largest > 1))
      throw InvalidArgument(fmt::format(
          "{}: {} of targets for as many classes, but \"{}\" is from {} to {} and not a share of 0 to 1; say which are "
          "targets with --target",
          path_, plural(columns_.targets.size(), "column"), shown(columns_, {each.column})[0], each.smallest,
          each.largest));
}

void TrainingTable::standardize(bool targets) {
  if (columns_.scales.empty()) {
    std::vector<std::string> labels;
    if (!targets) labels = columns_.targets;
    for (const CsvStatistics& each : statistics()) {
      const bool known = std::any_of(columns_.scales.begin(), columns_.scales.end(),
                                     [&](const CsvScale& scale) { return scale.column == each.column; });
      if (!each.is_category && !known && !is_in(labels, each.column))
        columns_.scales.push_back({each.column, each.mean, each.deviation > 0 ? each.deviation : 1});
    }
  }
  file_->set_scales(columns_.scales);
}

std::string TrainingTable::summary() const {
  std::string text = fmt::format("{}: {}", path_, plural(file_->num_rows(), "row"));
  if (validation_) text += fmt::format(", {} for validation", plural(file_->num_examples(*validation_), "example"));
  text += fmt::format("; inputs: {}", joined(shown(columns_, columns_.features)));
  text += fmt::format("; {}: {}", columns_.targets.size() == 1 ? "target" : "targets",
                      joined(shown(columns_, columns_.targets)));
  for (const auto& [column, texts] : columns_.categories)
    text += fmt::format("; {}: text, {}", shown(columns_, {column})[0],
                        texts.size() == 1 ? "1 category" : fmt::format("{} categories", texts.size()));
  if (!left_out_.empty())
    text += fmt::format("; left out: {} ({})", joined(shown(columns_, left_out_)),
                        left_out_.size() == 1 ? "a date" : "dates");
  if (!columns_.scales.empty()) text += "; standardised";
  return text;
}

void add_header_option(Command& command, DataOptions& options) {
  command.option("--header", options.header, "Whether the first line of a CSV has the names of its columns")
      .one_of({"yes", "no", "auto"})
      .show_default();
}

void add_missing_option(Command& command, DataOptions& options, const char* what) {
  command.option("--missing", options.missing, what).one_of({"error", "zero", "nan", "drop"}).show_default();
}

void add_table_options(Command& command, DataOptions& options) {
  command.option("--target", options.targets,
                 "Columns of the CSV that are targets, by name or by number from 1; left out: the last");
  command.option("--features", options.features,
                 "Columns that are inputs; left out: all others, except for dates. A date that is named is used "
                 "as time");
  command.option("--ignore", options.ignore, "Columns that are left out");
  command.option("--categorical", options.categorical,
                 "Columns of categories, which become numbers, kept in columns.json; left out: those of text");
  command.option("--look-back", options.look_back, "A time series: an input is this many rows after one another")
      .check(at_least(1))
      .value("N");
  command.option("--horizon", options.horizon, "and a target the targets of this many rows after them")
      .check(at_least(1))
      .value("N")
      .show_default();
  command
      .option("--standardize", options.standardize,
              "Bring each column to mean 0 and deviation 1, kept in columns.json; auto: with --look-back, and "
              "when there is no MODEL")
      .one_of({"yes", "no", "auto"})
      .show_default();
  add_missing_option(command, options, "What an empty field of an input is; drop: its line is left out");
  add_header_option(command, options);
}

}  // namespace plimsoll::internal
