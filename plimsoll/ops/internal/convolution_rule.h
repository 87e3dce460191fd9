// ConvolutionRule: the attributes that all ops of one convolution share, and the shapes that follow from them.
#pragma once

#include <optional>
#include <string>

#include "plimsoll/kernels/convolution.h"
#include "plimsoll/ops/convolution_size.h"
#include "plimsoll/tensor/op.h"

namespace plimsoll::internal {

enum class PaddingRule : unsigned char { valid, same, causal, given };

// "valid", "same", and "causal" where it `may_be_causal`. Throws InvalidArgument that begins with `where`.
PaddingRule padding_rule(const std::string& word, const char* where, bool may_be_causal = false);
// Throws InvalidArgument unless both are 1 or more.
void require_positive(const SpatialSize& size, const char* what, const char* where);

// Elements before the first and after the last of an axis. Requires a known size.
struct Margins {
  std::int64_t before = 0, after = 0;
  bool operator==(const Margins&) const = default;
};
Margins margins(PaddingRule padding, std::int64_t size, std::int64_t taps, std::int64_t stride, std::int64_t dilation);
// Windows along an axis; kUnknownSize when the size or the taps are; 0 when the window does not fit.
std::int64_t window_positions(PaddingRule padding, std::int64_t size, std::int64_t taps, std::int64_t stride,
                              std::int64_t dilation);

// `shape` with the batch of `of`: a batch may be unknown when a gradient is written down.
Shape with_batch(const Shape& shape, const Shape& of);

struct ConvolutionRule {
  const char* name;      // The function that was called.
  std::size_t axes = 2;  // Of images; 1: sequences.
  SpatialSize strides = 1, dilations = 1;
  PaddingRule padding = PaddingRule::valid;
  std::int64_t groups = 1;
  bool depthwise = false;           // One group per channel, and a filter [rows, columns, channels, multiplier].
  std::int64_t lanes = 0;           // As kernels have them.
  Margins rows = {}, columns = {};  // With PaddingRule::given.

  // Throws InvalidArgument. Unknown sizes stay unknown.
  Shape output_shape(const Shape& x, const Shape& filter) const;
  Shape transposed_shape(const Shape& y, const Shape& filter) const;

  // What kernels take. Require known shapes that agree.
  Convolution kernel(const Shape& x, const Shape& filter) const;
  Shape image(const Shape& shape) const;    // With a height of 1 when it has none.
  Shape window(const Shape& filter) const;  // The same for a filter.
  bool operator==(const ConvolutionRule&) const = default;

 private:
  void require_ranks(const Shape& x, const Shape& filter) const;
  void require_channels(const Shape& x, const Shape& filter) const;
};

}  // namespace plimsoll::internal
