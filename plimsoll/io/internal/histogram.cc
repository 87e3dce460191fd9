// Histograms like TensorBoard's: buckets that grow by a tenth, from 1e-12 to 1e20 on both sides of zero.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "plimsoll/base/wire.h"
#include "plimsoll/io/internal/event_messages.h"

namespace plimsoll::internal {
namespace {

// Upper ends, ascending; the last is the largest number.
const std::vector<double>& bucket_limits() {
  static const std::vector<double> limits = [] {
    std::vector<double> positive;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
    positive.push_back(std::numeric_limits<double>::max());
    std::vector<double> all;
    for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit) all.push_back(-*limit);
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    return all;
  }();
  return limits;
}

struct Histogram {
  double min = std::numeric_limits<double>::max(), max = -std::numeric_limits<double>::max();
  double count = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> buckets = std::vector<double>(bucket_limits().size());

  void add(double value) {
    if (!std::isfinite(value)) return;
    const std::vector<double>& limits = bucket_limits();
    const auto bucket = std::upper_bound(limits.begin(), limits.end() - 1, value) - limits.begin();
    ++buckets[static_cast<std::size_t>(bucket)];
    min = std::min(min, value);
    max = std::max(max, value);
    ++count;
    sum += value;
    sum_of_squares += value * value;
  }
};

}  // namespace

std::string histogram_value(std::string_view tag, const ConstTensorView& values) {
  Histogram histogram;
  visit_dtype(values.dtype(), [&]<class T>(TypeTag<T>) {
    for (const T element : values.span<T>()) {
      if constexpr (std::same_as<T, float16> || std::same_as<T, bfloat16>)
        histogram.add(static_cast<float>(element));
      else
        histogram.add(static_cast<double>(element));
    }
  });
  std::string limits, counts;  // Runs of empty buckets become one, which ends where the next begins.
  const std::vector<double>& ends = bucket_limits();
  for (std::size_t i = 0; i < ends.size();) {
    double end = ends[i];
    const double count = histogram.buckets[i++];
    if (count == 0)
      while (i < ends.size() && histogram.buckets[i] == 0) end = ends[i++];
    append_number(limits, end);
    append_number(counts, count);
  }
  WireWriter out, content;
  content.real(1, histogram.count > 0 ? histogram.min : 0);
  content.real(2, histogram.count > 0 ? histogram.max : 0);
  content.real(3, histogram.count);
  content.real(4, histogram.sum);
  content.real(5, histogram.sum_of_squares);
  content.text(6, limits);
  content.text(7, counts);
  out.text(1, tag);
  out.message(5, content);
  return out.bytes();
}

}  // namespace plimsoll::internal
