#include "plimsoll/model/onnx/onnx_writer.h"

#include "plimsoll/base/wire.h"
#include "plimsoll/model/onnx/onnx_proto.h"
#include "plimsoll/tensor/host_access.h"

namespace plimsoll::internal {
namespace {

constexpr std::uint32_t kVarint = 0, kBytes = 2, kFixed32 = 5;

std::string tag(std::uint32_t field, std::uint32_t type) {
  std::string bytes;
  append_varint(bytes, field << 3 | type);
  return bytes;
}

}  // namespace

void OnnxMessage::add(const std::string& bytes) {
  size_ += bytes.size();
  if (pieces_.empty() || !pieces_.back().elements.is_empty_handle()) pieces_.emplace_back();
  pieces_.back().bytes += bytes;
}

void OnnxMessage::integer(std::uint32_t field, std::int64_t value) {
  std::string bytes = tag(field, kVarint);
  append_varint(bytes, static_cast<std::uint64_t>(value));
  add(bytes);
}

void OnnxMessage::text(std::uint32_t field, std::string_view value) {
  std::string bytes = tag(field, kBytes);
  append_varint(bytes, value.size());
  add(bytes.append(value));
}

void OnnxMessage::single(std::uint32_t field, float value) {
  std::string bytes = tag(field, kFixed32);
  append_number(bytes, value);
  add(bytes);
}

void OnnxMessage::message(std::uint32_t field, OnnxMessage value) {
  std::string bytes = tag(field, kBytes);
  append_varint(bytes, value.size());
  add(bytes);
  for (Piece& piece : value.pieces_) {
    add(piece.bytes);
    if (piece.elements.is_empty_handle()) continue;
    size_ += piece.elements.nbytes();
    pieces_.back().elements = std::move(piece.elements);
  }
}

void OnnxMessage::elements(std::uint32_t field, const Tensor& value) {
  std::string bytes = tag(field, kBytes);
  append_varint(bytes, value.nbytes());
  add(bytes);
  if (value.nbytes() == 0) return;
  size_ += value.nbytes();
  pieces_.back().elements = value;
}

void OnnxMessage::write(AtomicFile& file) const {
  for (const Piece& piece : pieces_) {
    file.write(piece.bytes);
    if (piece.elements.is_empty_handle()) continue;
    const HostRead elements(piece.elements);
    file.write({reinterpret_cast<const char*>(elements.bytes()), piece.elements.nbytes()});
  }
}

OnnxMessage onnx_tensor(const std::string& name, const Tensor& value) {
  OnnxMessage tensor;
  for (const std::int64_t size : value.shape()) tensor.integer(1, size);
  tensor.integer(2, onnx::element_type_of(value.dtype()));
  if (!name.empty()) tensor.text(8, name);
  tensor.elements(9, value);
  return tensor;
}

OnnxMessage onnx_value_info(const std::string& name, DType dtype, const Shape& shape) {
  OnnxMessage sizes, tensor, type, info;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    OnnxMessage size;
    if (shape[axis] != kUnknownSize)
      size.integer(1, shape[axis]);
    else
      size.text(2, axis == 0 ? std::string("batch") : name + "_" + std::to_string(axis));
    sizes.message(1, std::move(size));
  }
  tensor.integer(1, onnx::element_type_of(dtype));
  tensor.message(2, std::move(sizes));
  type.message(1, std::move(tensor));
  info.text(1, name);
  info.message(2, std::move(type));
  return info;
}

namespace {

OnnxMessage attribute(const char* name, std::int64_t type) {
  OnnxMessage message;
  message.text(1, name);
  message.integer(20, type);
  return message;
}

}  // namespace

OnnxMessage real(const char* name, double value) {
  OnnxMessage message = attribute(name, 1);
  message.single(2, static_cast<float>(value));
  return message;
}
OnnxMessage integer(const char* name, std::int64_t value) {
  OnnxMessage message = attribute(name, 2);
  message.integer(3, value);
  return message;
}
OnnxMessage text(const char* name, const std::string& value) {
  OnnxMessage message = attribute(name, 3);
  message.text(4, value);
  return message;
}
OnnxMessage integers(const char* name, const std::vector<std::int64_t>& values) {
  OnnxMessage message = attribute(name, 7);
  for (const std::int64_t value : values) message.integer(8, value);
  return message;
}
OnnxMessage texts(const char* name, const std::vector<std::string>& values) {
  OnnxMessage message = attribute(name, 8);
  for (const std::string& value : values) message.text(9, value);
  return message;
}

}  // namespace plimsoll::internal
