#include "plimsoll/io/internal/npy_header.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <vector>

#include "plimsoll/base/rounding.h"
#include "plimsoll/base/wire.h"

namespace plimsoll::internal {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr const char* kDescr[kNumDTypes] = {"b1", "u1", "i1", "i2", "i4", "i8", "f2", "V2", "f4", "f8"};

// Parses exactly what Python's repr() writes for the dictionary.
class DictionaryReader {
 public:
  explicit DictionaryReader(std::string_view text) : text_(text) {}

  NpyHeader read() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !has_descr) {
        has_descr = true;
        descr(header);
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header.fortran_order = boolean_word();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        header.shape = shape();
      } else {
        throw NpyError(fmt::format("the header has an unknown or repeated key \"{}\"", key));
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size() || !has_descr || !has_order || !has_shape)
      throw NpyError("the header has no descr, fortran_order or shape, or more than them");
    return header;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) throw NpyError(fmt::format("the header lacks a '{}' at {}", c, at_));
  }
  std::string string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    const std::size_t end = quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : std::string_view::npos;
    if (end == std::string_view::npos) throw NpyError(fmt::format("the header lacks a text in quotes at {}", at_));
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  bool boolean_word() {
    skip_space();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    throw NpyError(fmt::format("the header lacks True or False at {}", at_));
  }
  Shape shape() {
    std::vector<std::int64_t> sizes;
    std::int64_t elements = 1;
    expect('(');
    while (!take(')')) {
      skip_space();
      std::int64_t size = -1;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) throw NpyError(fmt::format("the header lacks a size at {}", at_));
      at_ = static_cast<std::size_t>(end - text_.data());
      take('L');  // Python 2.
      if (sizes.size() == kMaxRank) throw NpyError(fmt::format("a shape of more than {} axes", kMaxRank));
      if (size > 0 && elements > std::numeric_limits<std::int64_t>::max() / 4096 / size)
        throw NpyError("a shape of more elements than can exist");
      if (size > 0) elements *= size;
      sizes.push_back(size);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return Shape(sizes);
  }

  void descr(NpyHeader& header) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[') throw NpyError("the header is that of a structured array");
    header.descr = string();
    std::string_view code = header.descr;
    header.swapped = code.starts_with('>');
    if (code.starts_with('<') || code.starts_with('>') || code.starts_with('|') || code.starts_with('='))
      code.remove_prefix(1);
    for (std::size_t i = 0; i < kNumDTypes; ++i)
      if (code == kDescr[i]) {
        header.dtype = static_cast<DType>(i);
        header.element_bytes = size_of(*header.dtype);
      }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

NpyPreamble parse_npy_preamble(std::string_view bytes) {
  if (bytes.size() < 10 || !bytes.starts_with(kMagic)) throw NpyError("is not a NumPy array");
  const int version = static_cast<unsigned char>(bytes[6]);
  if (version < 1 || version > 3 || bytes[7] != 0)
    throw NpyError(fmt::format("has version {}.{}; 1.0 to 3.0 are known", version, static_cast<int>(bytes[7])));
  if (version == 1) return {10, load_number<std::uint16_t>(bytes.data() + 8)};
  if (bytes.size() < 12) throw NpyError("ends in its header");
  return {12, load_number<std::uint32_t>(bytes.data() + 8)};
}

NpyHeader parse_npy_header(std::string_view text) { return DictionaryReader(text).read(); }

std::string format_npy_header(DType dtype, const Shape& shape) {
  const char order = size_of(dtype) == 1 || dtype == bf16 ? '|' : '<';
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': {}, }}", order,
                                 kDescr[static_cast<std::size_t>(dtype)], shape.to_tuple_string());
  const std::size_t whole = round_up(10 + text.size() + 1, 64);
  text.resize(whole - 11, ' ');
  text += '\n';
  std::string out(kMagic);
  out += {'\1', '\0'};
  append_number(out, static_cast<std::uint16_t>(text.size()));
  return out + text;
}

}  // namespace plimsoll::internal
