// Op: one operation with its attributes: the shapes of its results, its kernel, its gradient, and answers for planners.
//
//   class Scale final : public OpOf<Scale> {
//    public:
//     explicit Scale(float by) : by_(by) {}
//     const char* name() const noexcept override { return "Scale"; }
//     void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(0), in.dtype(0)); }
//     void run(const OpRun& r) const noexcept override { ... r.in[0], r.out[0], r.scratch ... }
//     void gradient(GradientContext& g) const override { g.give(0, g.grad(0) * by_); }
//    private:
//     float by_;
//   };
//   Tensor y = execute(Scale(2), x);                       // ops/execute.h
//
// The same object is run at once, recorded on a tape, put in a graph or costed by a forecast. It is immutable and holds
// no tensor. infer() uses only specs, so it works without data and with unknown sizes; it throws InvalidArgument and is
// the only part of an op that throws. run() never allocates: its scratch is a parameter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/shape.h"
#include "plimsoll/base/tensor_view.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {
namespace internal {
class KernelQueue;  // device/kernel_queue.h
struct IndexRule;   // device/index_rule.h
}  // namespace internal

struct RandomDraw;  // ops/random.h

struct SpecRef {
  const Shape* shape;
  DType dtype;
};

// The inputs of an op, as infer() sees them.
class Specs {
 public:
  explicit Specs(std::span<const SpecRef> specs) : specs_(specs) {}
  std::size_t size() const noexcept { return specs_.size(); }
  const Shape& shape(std::size_t input) const noexcept { return *specs_[input].shape; }
  DType dtype(std::size_t input) const noexcept { return specs_[input].dtype; }

 private:
  std::span<const SpecRef> specs_;
};

struct TensorSpec {
  Shape shape;
  DType dtype = f32;
  std::size_t bytes() const { return shape.size() * size_of(dtype); }
};

// The outputs of an op; the first needs no heap allocation.
class SpecList {
 public:
  void add(const Shape& shape, DType dtype) {
    if (size_ == 0) {
      first_.shape = shape;
      first_.dtype = dtype;
    } else {
      others_.push_back({shape, dtype});
    }
    ++size_;
  }
  std::size_t size() const noexcept { return size_; }
  const TensorSpec& operator[](std::size_t output) const noexcept { return output == 0 ? first_ : others_[output - 1]; }

 private:
  TensorSpec first_;
  std::vector<TensorSpec> others_;
  std::size_t size_ = 0;
};

// The operands of run(). Outputs are not cleared. Scratch is aligned to 64 bytes.
struct OpRun {
  std::span<const ConstTensorView> in;
  std::span<const TensorView> out;
  std::span<std::byte> scratch;
};

struct OpFacts {
  bool is_view = false;          // The output shares the input's bytes: execute() never runs it.
  bool is_pure = true;           // The same inputs give the same outputs, and nothing else happens.
  bool is_random = false;        // Draws numbers; key and offset are among its attributes.
  bool has_gradient = true;      // Otherwise tapes treat its outputs as constants.
  bool checks = false;           // check() may throw.
  bool remakes = false;          // remake() computes output 0 again, for a fraction of what its users cost.
  std::uint32_t overwrites = 0;  // Bit i: output 0 may overwrite input i when their sizes are the same.
};

// Bits of inputs and outputs. The last bit stands for all from 31 on.
using SlotMask = std::uint32_t;
constexpr SlotMask slot(std::size_t index) noexcept { return SlotMask{1} << (index < 31 ? index : 31); }

// What a tape keeps until the gradient is computed. It always knows shapes and dtypes.
struct SavedSlots {
  SlotMask inputs = 0;
  SlotMask outputs = 0;
  SlotMask remade = 0;  // Inputs that need not be kept when they are large and the op that made them can remake them.
};

// Gives gradient() its operands and takes its results.
class PLIMSOLL_API GradientContext {
 public:
  virtual std::size_t num_inputs() const noexcept = 0;
  virtual bool wants(std::size_t input) const noexcept = 0;  // Whether that input's gradient is needed.
  virtual const Shape& input_shape(std::size_t input) const = 0;
  virtual DType input_dtype(std::size_t input) const = 0;
  virtual const Tensor& input(std::size_t input) = 0;            // Requires that saved() named it.
  virtual const Tensor& output(std::size_t output) = 0;          // The same.
  virtual const Tensor& grad(std::size_t output = 0) = 0;        // Zeros when nothing used the output.
  virtual Tensor take_grad() { return grad(0); }                 // The same, to be overwritten; it replaces grad(0).
  virtual void done_with(std::size_t) {}                         // Frees an input that is not read again.
  virtual bool has_grad(std::size_t output) const noexcept = 0;  // Whether something used it.
  virtual void give(std::size_t input, Tensor gradient) = 0;     // Ignored when not wanted.

 protected:
  ~GradientContext() = default;
};

class PLIMSOLL_API Op {
 public:
  Op() = default;
  virtual ~Op();

  // "Add". Text that lives as long as the program.
  virtual const char* name() const noexcept = 0;
  // Adds a spec for every output. Throws InvalidArgument that begins with the op's name.
  virtual void infer(const Specs& in, SpecList& out) const = 0;
  virtual std::size_t workspace_bytes(const Specs& in, const SpecList& out) const;  // 0 unless overridden.
  // Counted work for planners, in bytes moved: what it reads and writes, unless overridden. Ops that compute more than
  // that add their multiplications (ops/op_cost.h). The same on every machine; no clock.
  virtual std::uint64_t cost(const Specs& in, const SpecList& out) const;
  // Requires the specs that infer() gave, and workspace_bytes() of scratch.
  virtual void run(const OpRun& run) const noexcept = 0;
  // The same on a device with kernels of its own: submits the work to the queue and returns true, or returns false,
  // having done nothing, when the device has no kernel for these operands. run() then does it on the host, on copies
  // (run_on.h). Must not access the operands' bytes. Also called with a queue that only answers whether it has a
  // kernel.
  virtual bool launch(KernelQueue& queue, const OpRun& run) const noexcept;
  // Checks what infer() cannot: elements that run() must not get. Throws InvalidArgument. Graphs call it before run();
  // for an op that runs at once, the function that makes it has already checked. Unless overridden, it checks indices.
  virtual void check(std::span<const ConstTensorView> in) const;
  // For an op that is given indices: what they must be, so that a device can check its own. Reads no elements. The
  // device's kernels (launch()) access nothing outside of their operands, whatever the indices are.
  virtual bool index_rule(std::span<const ConstTensorView> in, internal::IndexRule& rule) const;
  // For a random op: where its numbers begin, for graphs to set in their own copy.
  virtual RandomDraw* draw() noexcept;
  // For a view: the offset of the output in the input, in bytes.
  virtual std::size_t view_offset(const Specs& in) const;

  // What gradient() reads to compute the gradients of `wanted` inputs. Nothing unless overridden.
  virtual SavedSlots saved(SlotMask wanted) const;
  // In terms of other ops, so that it can be differentiated again.
  virtual void gradient(GradientContext& context) const;
  // For an op that remakes: output 0 to the bit, computed from what saved() names.
  virtual Tensor remake(GradientContext& context) const;
  virtual OpFacts facts() const noexcept;

  // For a copy with an owner: from now on it computes only what is read by others than its gradient. Returns the number
  // of those outputs, or 0 when there is nothing to leave out.
  virtual std::size_t make_lean() noexcept;

  // The name of an input in error messages: "x", "y", "z" and then numbers unless overridden.
  virtual std::string input_name(std::size_t input) const;

  // Whether it is the same op with the same attributes, so that both compute the same from the same operands. By
  // default an op equals only itself.
  virtual bool same_as(const Op& other) const noexcept { return this == &other; }

  // Makes a copy in `memory`, of object_bytes(), aligned for any object.
  virtual Op* copy_to(void* memory) const = 0;
  virtual std::size_t object_bytes() const noexcept = 0;

 protected:
  Op(const Op&) = default;
  Op& operator=(const Op&) = default;
};

// Implements copying; and same_as(), when the op has no attributes or compares them:
//
//   bool operator==(const Scale&) const = default;
template <class Derived>
class OpOf : public Op {
 public:
  bool same_as(const Op& other) const noexcept override {
    if (typeid(other) != typeid(Derived)) return false;
    if constexpr (sizeof(Derived) == sizeof(Op))
      return true;
    else if constexpr (requires { static_cast<bool (Derived::*)(const Derived&) const>(&Derived::operator==); })
      return static_cast<const Derived&>(*this) == static_cast<const Derived&>(other);
    else
      return this == &other;
  }
  bool operator==(const OpOf&) const noexcept { return true; }  // Its part of what an op's own compares.
  Op* copy_to(void* memory) const override { return ::new (memory) Derived(static_cast<const Derived&>(*this)); }
  std::size_t object_bytes() const noexcept override { return sizeof(Derived); }
};

}  // namespace plimsoll
