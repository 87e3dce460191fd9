// What the exchange of data with other libraries is made of.
#pragma once

#include <functional>
#include <vector>

#include "common.h"

namespace binding {

// Memory of another library: where it lies, and what gives it back (with Python's lock held).
struct Strided {
  void* data = nullptr;
  pl::DType dtype = pl::f32;
  std::size_t item_bytes = 4;
  std::vector<std::int64_t> shape = {}, byte_strides = {};
  bool is_read_only = false;
  std::function<void()> release = {};
  bool is_contiguous() const;  // And aligned.
};

// The bytes of a tensor, where they lie, while this lives.
struct Pinned {
  explicit Pinned(const pl::Tensor& x);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  const void* data = nullptr;
  pl::HostBytes bytes;  // What a budget could drop stays; of a device that the host cannot reach, a copy.
  pl::StorageRef storage;
  std::vector<Py_ssize_t> shape, byte_strides;
};

// The letter of a dtype in buffers; nullptr for bfloat16, which has none.
const char* format_of(pl::DType dtype);
// A read-only buffer on pinned bytes; the caller hands `pinned` over as view->internal.
void fill_buffer(PyObject* self, Py_buffer* view, int flags, const pl::Tensor& x, const char* format, Pinned& pinned);

// A bfloat16 tensor whose buffer is of 16-bit integers.
struct HalfBits {
  pl::Tensor tensor;
};

pl::Tensor copied(const Strided& memory);
pl::Tensor wrapped(Strided&& memory);
// What an object with __dlpack__ (or a capsule) has to give.
Strided dlpack_of(nb::handle object, std::optional<bool> copy);
// Calls it with Python's lock held: now, or when that can be had.
void return_to_python(std::function<void()> give_back);

}  // namespace binding
