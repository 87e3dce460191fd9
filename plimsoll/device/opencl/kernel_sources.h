// The sources of OpenCL kernels, by name. Each is a program of one kernel, "run".
//
//   kernel_source("flat.add.f32")      // out = a + b, for tensors of one shape
//
// | name                   | what it computes                                                                         |
// |------------------------|------------------------------------------------------------------------------------------|
// | unary.OP.T             | out = OP(x)                                                                              |
// | flat.OP.T              | out = a OP b, both of one shape or single elements                                       |
// | broad.OP.T             | the same with broadcasting, up to 5 axes                                                 |
// | number.OP.T            | out = a OP number, or number OP a                                                        |
// | cast.S.T               | from S to T                                                                              |
// | matmul.AB.ACTIVATION   | a product; A and B are n or t (transposed); bias and activation in the same pass         |
// | others                 | element_texts.cc, image_texts.cc, normalization_texts.cc, sequence_texts.cc              |
//
// T is f32, i32, i64 or u8 (booleans). Results of comparisons are u8. Multiplications and additions are not contracted,
// so that a device always gives the same bits. Matmul has two forms: matmul_registers keeps results in registers and
// has no barriers, for processors; matmul_local has the same arguments and uses local memory, for devices that have it.
// Arguments come in pairs of a buffer and an offset for each address: see kernel_queue.h. A name that ends with
// kGuarded is the same kernel with one more address in front: it does nothing unless the integer there is 0.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace plimsoll::internal {

constexpr char kGuarded = '?';

bool has_kernel_source(std::string_view name) noexcept;  // Without kGuarded.
std::string kernel_source(std::string_view name);        // Requires that it exists.

// A kernel that is not generated: its text, and a preamble that several may share.
struct KernelText {
  std::string_view name, text, before, then;
  int lanes = 1;  // Of V.
};
const KernelText* kernel_text(std::string_view name) noexcept;  // nullptr: there is none.
// By theme, each in its own file.
std::span<const KernelText> element_texts() noexcept;
std::span<const KernelText> image_texts() noexcept;
std::span<const KernelText> normalization_texts() noexcept;
std::span<const KernelText> sequence_texts() noexcept;
// What all kernels share, and functions of vectors of 1, 8 or 16 floats.
std::string_view common_text() noexcept;
std::string vector_text(int lanes);

}  // namespace plimsoll::internal
