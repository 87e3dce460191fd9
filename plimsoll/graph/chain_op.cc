#include "plimsoll/graph/chain_op.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/elementwise.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kBlockBytes = 16384;      // Per operand: a few of them fit the nearest cache.
constexpr std::int64_t kTaskBytes = 8 * 16384;  // The amount one thread takes at once.

const std::unordered_set<std::string_view>& elementwise_names() {
  static const auto& names = *new std::unordered_set<std::string_view>([] {
    std::unordered_set<std::string_view> made;
    for (unsigned char i = 0; i < static_cast<unsigned char>(BinaryOp::kCount); ++i)
      made.insert(op_name(static_cast<BinaryOp>(i)));
    for (unsigned char i = 0; i < static_cast<unsigned char>(UnaryOp::kCount); ++i)
      made.insert(op_name(static_cast<UnaryOp>(i)));
    for (unsigned char i = 0; i < static_cast<unsigned char>(TernaryOp::kCount); ++i)
      made.insert(op_name(static_cast<TernaryOp>(i)));
    return made;
  }());
  return names;
}

ConstTensorView part_of(const ConstTensorView& whole, std::size_t begin, std::size_t count) {
  const std::size_t size = size_of(whole.dtype());
  if (whole.size() == 1) return ConstTensorView(whole.bytes(), 0, whole.dtype(), Shape::scalar());
  return ConstTensorView(whole.bytes() + begin * size, 0, whole.dtype(), Shape({static_cast<std::int64_t>(count)}));
}

}  // namespace

bool ChainOp::takes(const Op& op, const std::vector<const TensorSpec*>& in, const TensorSpec& out) {
  if (in.empty() || in.size() > 2 || elementwise_names().count(op.name()) == 0) return false;
  if (out.dtype != f32 && out.dtype != f64 && out.dtype != i32 && out.dtype != i64) return false;
  bool whole = false;
  for (const TensorSpec* operand : in) {
    if (operand->dtype != out.dtype) return false;
    if (operand->shape == out.shape)
      whole = true;
    else if (operand->shape.size() != 1)
      return false;
  }
  return whole;
}

ChainOp::ChainOp(std::vector<Link> links) : links_(std::move(links)) {
  // The result may overwrite an operand of the first link if no other link reads that.
  const Link& first = links_.front();
  for (std::size_t i = 0; i < first.num_in; ++i) {
    const std::uint8_t operand = first.in[i];
    bool read_later = false;
    for (std::size_t link = 1; link < links_.size(); ++link)
      for (std::size_t k = 0; k < links_[link].num_in; ++k) read_later |= links_[link].in[k] == operand;
    if (!read_later && (first.op->facts().overwrites & slot(i)) != 0) overwrites_ |= slot(operand);
  }
}

void ChainOp::infer(const Specs& in, SpecList& out) const {
  std::size_t largest = 0;
  for (std::size_t i = 1; i < in.size(); ++i)
    if (in.shape(i).size() > in.shape(largest).size()) largest = i;
  out.add(in.shape(largest), in.dtype(largest));
}

bool ChainOp::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const ConstTensorView before = run.out[0];
  for (const Link& link : links_) {
    ConstTensorView in[2];
    for (std::size_t k = 0; k < link.num_in; ++k) in[k] = link.in[k] == kBefore ? before : run.in[link.in[k]];
    if (!link.op->launch(queue, {{in, link.num_in}, run.out, {}})) return false;
  }
  return true;
}

void ChainOp::run(const OpRun& run) const noexcept {
  const TensorView& out = run.out[0];
  const std::size_t size = size_of(out.dtype()), total = out.size(), block = kBlockBytes / size;
  const auto blocks = static_cast<std::int64_t>(divide_up(total, block));
  parallel_for(blocks, kTaskBytes / static_cast<std::int64_t>(kBlockBytes), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::size_t from = static_cast<std::size_t>(i) * block, count = std::min(block, total - from);
      const TensorView here(out.bytes() + from * size, 0, out.dtype(), Shape({static_cast<std::int64_t>(count)}));
      for (const Link& link : links_) {
        ConstTensorView in[2];
        for (std::size_t k = 0; k < link.num_in; ++k)
          in[k] = link.in[k] == kBefore ? ConstTensorView(here) : part_of(run.in[link.in[k]], from, count);
        link.op->run({{in, link.num_in}, {&here, 1}, {}});
      }
    }
  });
}

}  // namespace plimsoll::internal
