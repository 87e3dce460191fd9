// pprof's profile.proto: one sample for each label, with what it allocated and what is still live at the moment.
#include <unordered_map>

#include "plimsoll/base/wire.h"
#include "plimsoll/observe/internal/exporters.h"

namespace plimsoll::internal {
namespace {

// Fields of the messages Profile, ValueType, Sample, Label, Location, Line and Function.
enum ProfileField : std::uint32_t {
  kSampleType = 1,
  kSample = 2,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
  kTimeNanos = 9,
  kDurationNanos = 10,
  kPeriodType = 11,
  kPeriod = 12,
  kDefaultSampleType = 14,
};

class Profile {
 public:
  explicit Profile(const ExportedRun& run) : run_(run) { string(""); }

  std::uint64_t write(std::uint32_t end, ExportFile& file) {
    for (const auto& [type, unit] : {std::pair("alloc_objects", "count"), std::pair("alloc_space", "bytes"),
                                     std::pair("inuse_objects", "count"), std::pair("inuse_space", "bytes")})
      out_.message(kSampleType, value_type(type, unit));
    std::uint64_t allocations = 0;
    const std::vector<LabelTotals> totals = totals_by_label(run_, end);
    for (std::size_t label = 0; label < totals.size(); ++label) {
      if (totals[label].births == 0) continue;
      allocations += totals[label].births;
      add_sample(run_.history().labels[label], totals[label]);
    }
    out_.integer(kTimeNanos, run_.history().start_unix_ns);
    out_.integer(kDurationNanos, run_.end_ns() - run_.begin_ns());
    out_.message(kPeriodType, value_type("space", "bytes"));
    out_.integer(kPeriod, 1);
    out_.integer(kDefaultSampleType, string("inuse_space"));
    file.write(out_.bytes());
    WireWriter strings;
    for (const std::string* text : by_number_) strings.item(kStringTable, *text);
    file.write(strings.bytes());
    return allocations;
  }

 private:
  std::int64_t string(const std::string& text) {
    const auto [place, is_new] = strings_.try_emplace(text, static_cast<std::int64_t>(strings_.size()));
    if (is_new) by_number_.push_back(&place->first);
    return place->second;
  }

  WireWriter value_type(const char* type, const char* unit) {
    WireWriter value;
    value.integer(1, string(type));
    value.integer(2, string(unit));
    return value;
  }

  // A location for each function: only names of scopes and operations are known.
  std::uint64_t location(const std::string& frame, const ExportedRun::Site& site) {
    const auto [place, is_new] = locations_.try_emplace(frame, locations_.size() + 1);
    if (!is_new) return place->second;
    const auto id = static_cast<std::int64_t>(place->second);
    WireWriter function, line, location;
    function.integer(1, id);
    function.integer(2, string(frame));
    function.integer(3, string(frame));
    function.integer(4, string(site.file));
    out_.message(kFunction, function);
    line.integer(1, id);
    line.integer(2, site.line);
    location.integer(1, id);
    location.message(4, line);
    out_.message(kLocation, location);
    return place->second;
  }

  void add_label(WireWriter& sample, const char* key, const std::string& value) {
    if (value.empty()) return;
    WireWriter label;
    label.integer(1, string(key));
    label.integer(2, string(value));
    sample.message(3, label);
  }

  void add_sample(const TracedLabel& label, const LabelTotals& totals) {
    const std::vector<std::string> frames = run_.frames(label);
    const ExportedRun::Site site = run_.site(label);
    std::string path, locations, values;
    std::vector<std::uint64_t> stack;
    for (const std::string& frame : frames) stack.push_back(location(frame, site));
    for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame) append_varint(locations, *frame);  // Leaf first.
    for (const std::uint64_t value :
         {totals.births, totals.born_bytes, totals.births - totals.deaths, totals.born_bytes - totals.dead_bytes})
      append_varint(values, value);
    WireWriter sample;
    sample.item(1, locations);
    sample.item(2, values);
    add_label(sample, "category", category_name(label.category));
    add_label(sample, "budget", run_.name(label.budget));
    add_label(sample, "name", run_.name(label.name));
    add_label(sample, "shape", shape_text(label));
    out_.message(kSample, sample);
  }

  const ExportedRun& run_;
  WireWriter out_;
  std::unordered_map<std::string, std::int64_t> strings_;
  std::vector<const std::string*> by_number_;
  std::unordered_map<std::string, std::uint64_t> locations_;
};

}  // namespace

std::uint64_t export_pprof(const ExportedRun& run, std::uint32_t end, ExportFile& file) {
  return Profile(run).write(end, file);
}

}  // namespace plimsoll::internal
