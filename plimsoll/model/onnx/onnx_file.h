// OnnxFile: an ONNX file, mapped; and the tensors in it and in files next to it.
//
//   const auto file = OnnxFile::open("model.onnx");
//   Tensor w = file->tensor(model.graph.initializers[0]);     // A copy; of external data, the file's own pages.
//
// External data are searched for in the file's folder: names that lead out of it are refused (Corruption). They are
// used in place, on a private mapping that lasts as long as the tensor, or the variable made from it, and is not
// charged; data that are not aligned for their dtype, and those inside the file, are copied. Sizes are checked before
// memory is allocated. Thread safety: const, any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "plimsoll/model/onnx/onnx_proto.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

class OnnxFile {
 public:
  // Throws NotFound, Error when it cannot be read.
  static std::shared_ptr<const OnnxFile> open(const std::filesystem::path& path);
  // The caller's bytes, which must outlive it; external data are refused.
  OnnxFile(std::string name, std::string_view bytes) : name_(std::move(name)), bytes_(bytes) {}
  ~OnnxFile();
  OnnxFile(const OnnxFile&) = delete;
  OnnxFile& operator=(const OnnxFile&) = delete;

  const std::string& name() const noexcept { return name_; }
  std::string_view bytes() const noexcept { return bytes_; }

  // Throws Corruption, Unsupported for element types we do not have, OutOfMemory.
  Tensor tensor(const onnx::TensorProto& proto) const;
  // With its axes in this order (onnx_value.h), written that way at once, without a second copy.
  Tensor tensor(const onnx::TensorProto& proto, const std::vector<std::int64_t>& order) const;
  Tensor tensor(const onnx::SparseTensorProto& proto) const;  // Dense.
  // That a tensor was read and its bytes are not read again soon: the process lets its pages go.
  void forget(const onnx::TensorProto& proto) const noexcept;

 private:
  OnnxFile() = default;
  Tensor external_tensor(const onnx::TensorProto& proto, const Shape& shape, DType dtype) const;
  // In place, where the alignment allows it: `unmap` is called when the last tensor there is gone.
  static Tensor external_tensor(char* first, const Shape& shape, DType dtype, std::function<void(void*)> unmap);
  void fill(const onnx::TensorProto& proto, const TensorView& out) const;
  [[noreturn]] void corrupt(const onnx::TensorProto& proto, std::string_view what) const;

  std::string name_;
  std::filesystem::path folder_;
  std::string_view bytes_;
  void* mapped_ = nullptr;
};

}  // namespace plimsoll::internal
