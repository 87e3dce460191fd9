// ChainOp: runs elementwise operations one after the other, block by block: intermediate values never leave the caches.
//
// Each takes the result of the one before, and operands from outside, of as many elements or one. The ops' own kernels
// run on each block, so every element has the same bits as without the chain. Cost: one pass over the operands.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/tensor/op.h"

namespace plimsoll::internal {

class ChainOp final : public OpOf<ChainOp> {
 public:
  static constexpr std::uint8_t kBefore = 255;  // An operand that is the previous link's result.
  struct Link {
    const Op* op = nullptr;  // Outlives the chain.
    std::uint8_t num_in = 0;
    std::uint8_t in[2] = {};  // Operands of the chain, or kBefore.
  };
  explicit ChainOp(std::vector<Link> links);

  const char* name() const noexcept override { return "chain"; }
  void infer(const Specs& in, SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;  // One after the other.
  OpFacts facts() const noexcept override { return {.has_gradient = false, .overwrites = overwrites_}; }
  std::size_t num_links() const noexcept { return links_.size(); }

  // Whether an op can be part of a chain when its operands have these specs: each element of its result depends only on
  // those at its place.
  static bool takes(const Op& op, const std::vector<const TensorSpec*>& in, const TensorSpec& out);

 private:
  std::vector<Link> links_;
  std::uint32_t overwrites_ = 0;
};

}  // namespace plimsoll::internal
