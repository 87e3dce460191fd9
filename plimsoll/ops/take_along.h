// The ops that pick elements along an axis by position and put them back; the gradients of sorting, of the k largest
// and of losses by label are built from them.
//
//   execute(TakeAlong(1), x, indices)            // x [2, 5], indices [2, 3]: y[r, j] = x[r, indices[r, j]]
//   execute(PlaceAlong(1, 5), updates, indices)  // updates [2, 3]: zeros [2, 5], to which y[r, indices[r, j]] +=
//
// Indices are i32 or i64 and have the shape of x except along the axis; each op is the other's gradient. A position
// outside the axis reads as 0 and is not written: code that takes positions from a program checks them first.
#pragma once

#include "plimsoll/tensor/op.h"

namespace plimsoll::internal {

class TakeAlong final : public OpOf<TakeAlong> {
 public:
  explicit TakeAlong(std::size_t axis) noexcept : axis_(axis) {}
  const char* name() const noexcept override { return "take_along"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(1), in.dtype(0)); }
  void run(const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(1)}; }
  void gradient(GradientContext& c) const override;
  bool operator==(const TakeAlong&) const = default;

 private:
  std::size_t axis_;
};

class PlaceAlong final : public OpOf<PlaceAlong> {
 public:
  PlaceAlong(std::size_t axis, std::int64_t size) noexcept : axis_(axis), size_(size) {}
  const char* name() const noexcept override { return "place_along"; }
  void infer(const Specs& in, SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(1)}; }
  void gradient(GradientContext& c) const override;
  bool operator==(const PlaceAlong&) const = default;

 private:
  std::size_t axis_;
  std::int64_t size_;  // Of the output along the axis.
};

}  // namespace plimsoll::internal
