// Op: one operation with its attributes: the shapes it gives, the kernel it calls, its gradient, and what planners ask.
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
// no tensor. infer() looks at specs only, so it works without data, also with unknown sizes; it throws InvalidArgument
// and is the only part of an op that throws. run() never allocates: its scratch is a parameter.
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

// The outputs of an op: the first without the heap.
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

// What run() works on. Outputs are not cleared. Scratch is aligned to 64 bytes.
struct OpRun {
  std::span<const ConstTensorView> in;
  std::span<const TensorView> out;
  std::span<std::byte> scratch;
};

struct OpFacts {
  bool is_view = false;          // The output is the input's bytes: execute() shares the storage and never runs it.
  bool is_pure = true;           // The same inputs give the same outputs, and nothing else happens.
  bool is_random = false;        // Draws numbers; key and offset are among its attributes.
  bool has_gradient = true;      // Else tapes take its outputs for constants.
  bool checks = false;           // check() may throw.
  bool remakes = false;          // remake() gives output 0 again, for a fraction of what its users cost.
  std::uint32_t overwrites = 0;  // Bit i: output 0 may take the place of input i, when their sizes are the same.
};

// Bits of inputs and outputs. The last bit stands for all from 31 on.
using SlotMask = std::uint32_t;
constexpr SlotMask slot(std::size_t index) noexcept { return SlotMask{1} << (index < 31 ? index : 31); }

// What a tape keeps until the gradient is asked for. Shapes and dtypes it always knows.
struct SavedSlots {
  SlotMask inputs = 0;
  SlotMask outputs = 0;
  SlotMask remade = 0;  // Of the inputs: large ones need not be kept when the op that made them can do so again.
};

// Where gradient() finds its operands and puts its results.
class PLIMSOLL_API GradientContext {
 public:
  virtual std::size_t num_inputs() const noexcept = 0;
  virtual bool wants(std::size_t input) const noexcept = 0;  // Whether that input's gradient is asked for.
  virtual const Shape& input_shape(std::size_t input) const = 0;
  virtual DType input_dtype(std::size_t input) const = 0;
  virtual const Tensor& input(std::size_t input) = 0;            // Requires that saved() named it.
  virtual const Tensor& output(std::size_t output) = 0;          // The same.
  virtual const Tensor& grad(std::size_t output = 0) = 0;        // Of output; zeros when nothing used it.
  virtual Tensor take_grad() { return grad(0); }                 // The same, to be overwritten; grad(0) is gone then.
  virtual void done_with(std::size_t) {}                         // An input that is not read again is let go now.
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
  // Adds a spec for every output. Throws InvalidArgument in the op's name.
  virtual void infer(const Specs& in, SpecList& out) const = 0;
  virtual std::size_t workspace_bytes(const Specs& in, const SpecList& out) const;  // 0 unless overridden.
  // Counted work for planners, in bytes moved: what it reads and writes, unless overridden. Ops that compute more than
  // that add their multiplications (ops/op_cost.h). The same on every machine; no clock.
  virtual std::uint64_t cost(const Specs& in, const SpecList& out) const;
  // Requires the specs that infer() gave, and workspace_bytes() of scratch.
  virtual void run(const OpRun& run) const noexcept = 0;
  // The same on a device with kernels of its own: gives its work to the queue, and true; false, having done nothing,
  // when it has no kernel for these operands there. Then run() does it on the host, on copies (run_on.h). The operands'
  // bytes may not be looked at. Asked with a queue that only says what it has, too.
  virtual bool launch(KernelQueue& queue, const OpRun& run) const noexcept;
  // What infer() cannot see: elements that run() may not be given. Throws InvalidArgument. Graphs call it before run();
  // where an op is run at once, the function that makes it has looked before.
  virtual void check(std::span<const ConstTensorView> in) const;
  // Of a random op: where its numbers begin, for graphs to set in a copy of their own.
  virtual RandomDraw* draw() noexcept;
  // Of a view: the offset of the output in the input, in bytes.
  virtual std::size_t view_offset(const Specs& in) const;

  // What gradient() reads when the gradients of `wanted` inputs are asked for. Nothing unless overridden.
  virtual SavedSlots saved(SlotMask wanted) const;
  // In terms of other ops, so that it can be differentiated again.
  virtual void gradient(GradientContext& context) const;
  // Of an op that remakes: output 0 to the bit, from what saved() names.
  virtual Tensor remake(GradientContext& context) const;
  virtual OpFacts facts() const noexcept;

  // Of a copy that somebody owns: from now on it gives only what others than its gradient read: so many outputs, or 0
  // when it has nothing to leave out.
  virtual std::size_t make_lean() noexcept;

  // What error messages call an input: "x", "y", "z" and then numbers unless overridden.
  virtual std::string input_name(std::size_t input) const;

  // Whether it is the same op with the same attributes, so that both give the same of the same operands. Those that do
  // not tell are the same as no other.
  virtual bool same_as(const Op& other) const noexcept { return this == &other; }

  // For those who keep ops: a copy in `memory`, of object_bytes(), aligned for any object.
  virtual Op* copy_to(void* memory) const = 0;
  virtual std::size_t object_bytes() const noexcept = 0;

 protected:
  Op(const Op&) = default;
  Op& operator=(const Op&) = default;
};

// Gives an op its copying; and same_as(), when it has no attributes or compares them:
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
