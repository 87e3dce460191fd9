// OnnxMessage: a message of an ONNX file that is being written, whose tensors are written from where they lie.
//
//   OnnxMessage graph;
//   graph.text(2, "main");
//   graph.message(5, onnx_tensor("w", value));            // Keeps the tensor, not a copy of its bytes.
//   graph.write(file);
//
// Lengths are known before anything is written, so a file of any size takes no memory beside its tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

class OnnxMessage {
 public:
  void integer(std::uint32_t field, std::int64_t value);   // Also when it is 0.
  void text(std::uint32_t field, std::string_view value);  // Also when it is empty.
  void single(std::uint32_t field, float value);
  void message(std::uint32_t field, OnnxMessage value);
  void elements(std::uint32_t field, const Tensor& value);  // Its bytes.

  std::uint64_t size() const noexcept { return size_; }
  void write(AtomicFile& file) const;

 private:
  struct Piece {
    std::string bytes;
    Tensor elements;  // After them.
  };
  void add(const std::string& bytes);
  std::vector<Piece> pieces_;
  std::uint64_t size_ = 0;
};

OnnxMessage onnx_tensor(const std::string& name, const Tensor& value);
// An input or output; sizes that are unknown are left open, the first under the name "batch".
OnnxMessage onnx_value_info(const std::string& name, DType dtype, const Shape& shape);

// Attributes of nodes.
OnnxMessage real(const char* name, double value);
OnnxMessage integer(const char* name, std::int64_t value);
OnnxMessage text(const char* name, const std::string& value);
OnnxMessage integers(const char* name, const std::vector<std::int64_t>& values);
OnnxMessage texts(const char* name, const std::vector<std::string>& values);

}  // namespace plimsoll::internal
