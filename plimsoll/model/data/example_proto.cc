#include "plimsoll/model/data/example_proto.h"

#include <fmt/format.h>

#include <cstring>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

// The fields of one message, one after the other.
class Fields {
 public:
  Fields(std::string_view bytes, const char* begin) : bytes_(bytes), begin_(begin) {}

  bool next() {
    if (bytes_.empty()) return false;
    const std::uint64_t tag = varint();
    field = static_cast<std::uint32_t>(tag >> 3);
    type = static_cast<std::uint32_t>(tag & 7);
    const char* const at = bytes_.data();
    if (type == 0) {
      varint();
      content = {at, static_cast<std::size_t>(bytes_.data() - at)};
    } else if (type == 1 || type == 5) {
      content = take(type == 1 ? 8 : 4);
    } else if (type == 2) {
      content = take(varint());
    } else {
      corrupt("a field of an unknown type");
    }
    return true;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    corrupt("a number of more than 64 bits");
  }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size()) corrupt("a field is longer than its message");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  bool empty() const noexcept { return bytes_.empty(); }
  [[noreturn]] void corrupt(const char* what) const {
    throw Corruption(fmt::format("tf.Example: {} (byte {})", what, bytes_.data() - begin_));
  }

  std::uint32_t field = 0, type = 0;
  std::string_view content;  // Of a number: its bytes.

 private:
  std::string_view bytes_;
  const char* const begin_;
};

}  // namespace

class ExampleParser {
 public:
  explicit ExampleParser(std::string_view record) : begin_(record.data()) {
    for (Fields example(record, begin_); example.next();)
      if (example.field == 1 && example.type == 2) read_features(example.content);
  }
  std::map<std::string, ExampleValues, std::less<>> features;

 private:
  void read_features(std::string_view bytes) {
    for (Fields list(bytes, begin_); list.next();) {
      if (list.field != 1 || list.type != 2) continue;
      std::string_view name, value;
      for (Fields entry(list.content, begin_); entry.next();) {
        if (entry.field == 1 && entry.type == 2) name = entry.content;
        if (entry.field == 2 && entry.type == 2) value = entry.content;
      }
      features[std::string(name)] = read_feature(value);
    }
  }
  ExampleValues read_feature(std::string_view bytes) {
    ExampleValues result;
    for (Fields feature(bytes, begin_); feature.next();) {
      if (feature.type != 2) feature.corrupt("a feature that is not a list");
      if (feature.field == 1) read_bytes(feature.content, result);
      if (feature.field == 2) read_floats(feature.content, result);
      if (feature.field == 3) read_integers(feature.content, result);
    }
    return result;
  }
  void read_bytes(std::string_view bytes, ExampleValues& out) {
    out.kind_ = ExampleValues::Kind::kBytes;
    for (Fields list(bytes, begin_); list.next();)
      if (list.field == 1 && list.type == 2 && out.pieces_.empty()) add(out, list.content, list.content.size());
  }
  void read_floats(std::string_view bytes, ExampleValues& out) {
    out.kind_ = ExampleValues::Kind::kFloat;
    for (Fields list(bytes, begin_); list.next();) {
      if (list.field != 1 || (list.type != 2 && list.type != 5)) continue;
      if (list.content.size() % 4 != 0) list.corrupt("packed floats of no whole number");
      add(out, list.content, list.content.size() / 4);
    }
  }
  void read_integers(std::string_view bytes, ExampleValues& out) {
    out.kind_ = ExampleValues::Kind::kInt64;
    for (Fields list(bytes, begin_); list.next();) {
      if (list.field != 1 || (list.type != 2 && list.type != 0)) continue;
      std::size_t count = 0;
      for (Fields packed(list.content, begin_); !packed.empty(); ++count) packed.varint();
      add(out, list.content, count);
    }
  }
  static void add(ExampleValues& out, std::string_view piece, std::size_t count) {
    out.pieces_.push_back(piece);
    out.size_ += count;
  }

  const char* const begin_;
};

bool ExampleValues::copy_to(const TensorView& out) const {
  if (size_ != out.size() || kind_ == Kind::kNone || (kind_ == Kind::kBytes) != (out.dtype() == u8)) return false;
  if (kind_ == Kind::kBytes) {
    if (size_ > 0) std::memcpy(out.bytes(), pieces_[0].data(), size_);
    return true;
  }
  visit_dtype(out.dtype(), [&]<class T>(TypeTag<T>) {
    std::size_t at = 0;
    const auto put = [&](auto value) {
      if constexpr (std::is_arithmetic_v<T>)
        out.data<T>()[at++] = static_cast<T>(value);
      else
        out.data<T>()[at++] = T(static_cast<float>(value));
    };
    for (const std::string_view piece : pieces_) {
      if (kind_ == Kind::kInt64) {
        for (Fields values(piece, piece.data()); !values.empty();) put(static_cast<std::int64_t>(values.varint()));
        continue;
      }
      for (std::size_t i = 0; i < piece.size(); i += sizeof(float)) {
        float value = 0;
        std::memcpy(&value, piece.data() + i, sizeof(float));
        put(value);
      }
    }
  });
  return true;
}

std::map<std::string, ExampleValues, std::less<>> parse_example(std::string_view record) {
  return std::move(ExampleParser(record).features);
}

}  // namespace plimsoll::internal
