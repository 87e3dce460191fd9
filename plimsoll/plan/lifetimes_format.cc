#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "plimsoll/plan/lifetimes_csv.h"

namespace plimsoll::internal {
namespace {

std::string format_gaps(const std::vector<Gap>& gaps) {
  std::string text;
  for (const Gap& gap : gaps) {
    if (!text.empty()) text += ' ';
    text += std::to_string(gap.lower) + "-" + std::to_string(gap.upper);
    if (gap.window_lower < gap.window_upper)
      text += "@" + std::to_string(gap.window_lower) + ":" + std::to_string(gap.window_upper);
  }
  return text;
}

std::string format_mark(const Lifetimes& lifetimes) {
  std::size_t peak = 0;
  for (std::size_t i = 0; i < lifetimes.buffers.size(); ++i)
    peak = std::max(peak, lifetimes.offsets[i] + lifetimes.buffers[i].size);
  char mark[96];
  std::snprintf(mark, sizeof mark, "# plimsoll plan instance=%016" PRIx64 " peak=%zu\n",
                instance_hash(lifetimes.buffers), peak);
  return mark;
}

// FNV-1a over 64-bit words, with a final mix so that small numbers spread.
class Hash {
 public:
  void add(std::uint64_t word) { state_ = (state_ ^ word) * 0x100000001b3ull, state_ ^= state_ >> 29; }
  std::uint64_t value() const { return (state_ ^ (state_ >> 32)) * 0x9e3779b97f4a7c15ull; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ull;
};

}  // namespace

std::string format_lifetimes(const Lifetimes& lifetimes) {
  const auto& buffers = lifetimes.buffers;
  const auto any = [&](auto needs) { return std::any_of(buffers.begin(), buffers.end(), needs); };
  const bool alignment = any([](const Buffer& b) { return b.alignment != 1; });
  const bool gaps = any([](const Buffer& b) { return !b.gaps.empty(); });
  const bool alias = any([](const Buffer& b) { return b.alias_set != kNoAliasSet; });
  const bool offset = !lifetimes.offsets.empty();
  std::string text = offset ? format_mark(lifetimes) : "";
  text += "id,lower,upper,size";
  text += alignment ? ",alignment" : "";
  text += gaps ? ",gaps" : "";
  text += alias ? ",alias_set,alias_offset" : "";
  text += offset ? ",offset\n" : "\n";
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& b = buffers[i];
    text +=
        lifetimes.ids[i] + "," + std::to_string(b.lower) + "," + std::to_string(b.upper) + "," + std::to_string(b.size);
    if (alignment) text += "," + std::to_string(b.alignment);
    if (gaps) text += "," + format_gaps(b.gaps);
    if (alias) text += "," + std::to_string(b.alias_set) + "," + std::to_string(b.alias_offset);
    if (offset) text += "," + std::to_string(lifetimes.offsets[i]);
    text += '\n';
  }
  return text;
}

std::uint64_t instance_hash(const std::vector<Buffer>& buffers) {
  Hash hash;
  hash.add(buffers.size());
  for (const Buffer& b : buffers) {
    hash.add(b.size);
    hash.add(static_cast<std::uint64_t>(b.lower));
    hash.add(static_cast<std::uint64_t>(b.upper));
    hash.add(b.alignment);
    hash.add(static_cast<std::uint64_t>(b.alias_set));
    hash.add(b.alias_offset);
    hash.add(b.gaps.size());
    for (const Gap& g : b.gaps) {
      hash.add(static_cast<std::uint64_t>(g.lower));
      hash.add(static_cast<std::uint64_t>(g.upper));
      hash.add(g.window_lower);
      hash.add(g.window_upper);
    }
  }
  return hash.value();
}

}  // namespace plimsoll::internal
