#include "plimsoll/io/internal/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace plimsoll::internal {
namespace {

struct FileType {
  const char* name;
  unsigned bits;
};
constexpr FileType kFileTypes[] = {
    {"BOOL", 8},        {"U8", 8},    {"I8", 8},      {"I16", 16},    {"I32", 32},    {"I64", 64},
    {"F16", 16},        {"BF16", 16}, {"F32", 32},    {"F64", 64},    {"U16", 16},    {"U32", 32},
    {"U64", 64},        {"C64", 64},  {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"F4", 4},    {"F6_E3M2", 6}, {"F6_E2M3", 6},
};  // The first are ours, in the order of DType.

const FileType* find_type(std::string_view name) {
  const auto found = std::find_if(std::begin(kFileTypes), std::end(kFileTypes),
                                  [&](const FileType& type) { return name == type.name; });
  return found == std::end(kFileTypes) ? nullptr : found;
}

// {"__metadata__": {text: text}, name: {"dtype": text, "shape": [n..], "data_offsets": [n, n]}}, and nothing else.
class HeaderHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeader header;

  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("a boolean"); }
  bool number_float(double, const std::string&) override { return refuse("a number that is not whole"); }
  bool binary(binary_t&) override { return refuse("binary data"); }
  bool number_integer(std::int64_t) override { return refuse("a negative number"); }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ != Place::kShape && place_ != Place::kOffsets) return refuse("a number");
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return refuse("a number above 2^63");
    if (numbers_.size() >= (place_ == Place::kShape ? kMaxRank : 2)) return refuse("too many numbers");
    numbers_.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::kMetadata) return header.metadata.emplace(key_, value).second || refuse("a repeated key");
    if (place_ != Place::kEntry || key_ != "dtype") return refuse("a text");
    entry_.dtype_name = value;
    return true;
  }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::kStart:
        place_ = Place::kTop;
        return true;
      case Place::kTop:
        place_ = key_ == "__metadata__" ? Place::kMetadata : Place::kEntry;
        entry_ = {};
        entry_.name = key_;
        seen_.clear();
        return true;
      default:
        return refuse("an object");
    }
  }
  bool key(std::string& value) override {
    key_ = value;
    if (place_ == Place::kTop && !names_.insert(value).second) return refuse("a repeated name");
    if (place_ != Place::kEntry) return true;
    if (value != "dtype" && value != "shape" && value != "data_offsets") return refuse("an unknown key");
    return seen_.insert(value).second || refuse("a repeated key");
  }
  bool end_object() override {
    if (place_ == Place::kTop) {
      place_ = Place::kEnd;
      return true;
    }
    if (place_ == Place::kEntry && !end_entry()) return false;
    place_ = Place::kTop;
    return true;
  }
  bool start_array(std::size_t) override {
    if (place_ != Place::kEntry || key_ == "dtype") return refuse("a list");
    place_ = key_ == "shape" ? Place::kShape : Place::kOffsets;
    numbers_.clear();
    return true;
  }
  bool end_array() override {
    if (place_ == Place::kOffsets) {
      if (numbers_.size() != 2 || numbers_[0] > numbers_[1]) return refuse("data_offsets that are not begin and end");
      entry_.offset = static_cast<std::uint64_t>(numbers_[0]);
      entry_.size = static_cast<std::uint64_t>(numbers_[1] - numbers_[0]);
    } else {
      shape_ = numbers_;
    }
    place_ = Place::kEntry;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    throw HeaderError(position, fmt::format("the header is not JSON: {}", error.what()));
  }

 private:
  enum class Place { kStart, kTop, kMetadata, kEntry, kShape, kOffsets, kEnd };

  bool end_entry() {
    if (seen_.size() != 3) return refuse("no dtype, shape or data_offsets");
    const FileType* type = find_type(entry_.dtype_name);
    if (!type) return refuse(fmt::format("the unknown dtype \"{}\"", entry_.dtype_name));
    std::uint64_t bits = type->bits;
    const bool empty = std::find(shape_.begin(), shape_.end(), 0) != shape_.end();
    for (const std::int64_t size : shape_) {
      if (size > 0 && bits > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) /
                                 static_cast<std::uint64_t>(size))
        return refuse("a shape of more elements than can exist");
      if (size > 0) bits *= static_cast<std::uint64_t>(size);
    }
    if (empty) bits = 0;
    if (bits % 8 != 0 || bits / 8 != entry_.size)
      return refuse(fmt::format("{} bytes where its dtype and shape have {} bits", entry_.size, bits));
    entry_.dtype = safetensors_dtype(entry_.dtype_name);
    entry_.shape = Shape(shape_);
    header.entries.push_back(std::move(entry_));
    return true;
  }

  // Throws: the parser would go on to its own error.
  bool refuse(const std::string& what) const {
    const bool inside = place_ != Place::kStart && place_ != Place::kTop && place_ != Place::kMetadata;
    throw HeaderError(
        0, fmt::format("the header has {}{}", what,
                       inside ? fmt::format(" in tensor \"{}\"", entry_.name) : fmt::format(" at \"{}\"", key_)));
  }

  Place place_ = Place::kStart;
  std::string key_;
  SafetensorsEntry entry_;
  std::vector<std::int64_t> numbers_, shape_;
  std::set<std::string> seen_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace

std::optional<DType> safetensors_dtype(std::string_view name) noexcept {
  const FileType* type = find_type(name);
  const auto number = static_cast<std::size_t>(type - kFileTypes);
  if (!type || number >= kNumDTypes) return {};
  return static_cast<DType>(number);
}

const char* safetensors_dtype_name(DType dtype) noexcept { return kFileTypes[static_cast<std::size_t>(dtype)].name; }

SafetensorsHeader parse_safetensors_header(std::string_view text) {
  if (text.empty() || text[0] != '{') throw HeaderError(0, "the header does not begin with {");
  HeaderHandler handler;
  nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  SafetensorsHeader header = std::move(handler.header);
  std::sort(header.entries.begin(), header.entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.size < b.size;
  });
  std::uint64_t end = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.offset != end)
      throw HeaderError(
          0, fmt::format("tensor \"{}\" begins at {} of the data, where {} is next", entry.name, entry.offset, end));
    end += entry.size;
  }
  return header;
}

}  // namespace plimsoll::internal
