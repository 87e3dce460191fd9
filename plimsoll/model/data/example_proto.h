// Parses the features of a tf.Example from the bytes of its protocol buffer.
//
//   const auto features = parse_example(record);             // Throws Corruption for damaged bytes.
//   features.at("label").size();                             // Values; for bytes, the length of the first.
//
// Values point into the record, which must stay valid. Nothing outside it is read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

class ExampleValues {
 public:
  enum class Kind : unsigned char { kNone, kBytes, kFloat, kInt64 };

  Kind kind() const noexcept { return kind_; }
  std::size_t size() const noexcept { return size_; }
  // Converts numbers as static_cast does; bytes go to u8 only. False when the kinds do not agree or sizes differ.
  bool copy_to(const TensorView& out) const;

 private:
  friend class ExampleParser;
  Kind kind_ = Kind::kNone;
  std::size_t size_ = 0;
  std::vector<std::string_view> pieces_;  // Of the record: packed values, one after the other.
};

std::map<std::string, ExampleValues, std::less<>> parse_example(std::string_view record);

}  // namespace plimsoll::internal
