// The messages of an ONNX file that we read: graphs, nodes, attributes, tensors, types, functions.
//
//   const OnnxFile file("model.onnx");                       // Mapped, not copied.
//   const onnx::ModelProto model = parse_onnx(file);          // Names and sizes; tensors stay where they lie.
//   model.graph.nodes[0].op_type;                             // "Conv"
//
// Elements of tensors are views into the mapped file, so parsing takes memory for names and structure only. Nothing is
// trusted: damage throws Corruption with its offset; more nodes, nesting or axes than the limits below are Unsupported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/dtype.h"
#include "plimsoll/base/shape.h"

namespace plimsoll::internal {

class OnnxFile;

namespace onnx {

inline constexpr std::size_t kMostNodes = std::size_t{1}
                                          << 20;  // Of a file, those of subgraphs and functions included.
inline constexpr int kMostDepth = 32;             // Of graphs inside of attributes of nodes.
inline constexpr std::int64_t kNewestOpset = 28;  // Newer ones are refused.

// Numbers of TensorProto.DataType.
enum ElementType : std::int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kBfloat16 = 16,
};
std::string element_type_name(std::int32_t type);           // "uint16", "string".
std::optional<DType> dtype_of(std::int32_t type) noexcept;  // Empty for those we do not have.
std::int32_t element_type_of(DType dtype) noexcept;

struct TensorProto {
  std::string name;
  std::int32_t type = kUndefined;
  std::vector<std::int64_t> dims;
  std::string_view raw;  // Elements as in memory; else they are in one of these:
  std::vector<std::string_view> floats, doubles, int32s, int64s;  // Packed or single numbers, as the wire has them.
  std::vector<std::string_view> strings;
  std::vector<std::uint64_t> numbers;           // Elements that were not packed.
  std::map<std::string, std::string> external;  // "location", "offset", "length".
  bool is_external = false;
  std::uint64_t offset = 0;  // Of the message in the file.
};

struct SparseTensorProto {
  TensorProto values, indices;
  std::vector<std::int64_t> dims;
};

struct GraphProto;

struct AttributeProto {
  std::string name;
  std::int32_t type = 0;  // 1 float, 2 int, 3 string, 4 tensor, 5 graph, 6 floats, 7 ints, 8 strings.
  float real = 0;
  std::int64_t integer = 0;
  std::string text;
  std::vector<float> reals;
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
  std::shared_ptr<TensorProto> tensor;
  std::shared_ptr<SparseTensorProto> sparse;
  std::shared_ptr<GraphProto> graph;
  std::string reference;   // Of a node in a function: the function's attribute it stands for.
  std::string_view bytes;  // The message, as the file has it.
};

struct NodeProto {
  std::string name, op_type, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<AttributeProto> attributes;
};

// A size that is not a number has a name, or "" when the file says nothing of it.
struct Dim {
  std::int64_t size = kUnknownSize;
  std::string name;
};

struct ValueInfo {
  std::string name;
  bool is_tensor = false;  // Else a sequence, map or optional.
  std::int32_t type = kUndefined;
  bool has_shape = false;
  std::vector<Dim> dims;
  std::string_view bytes;

  Shape shape() const;  // Unknown sizes -1; unset without a shape.
};

struct GraphProto {
  std::string name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparse_initializers;
  std::vector<ValueInfo> inputs, outputs;
};

using Opsets = std::map<std::string, std::int64_t>;  // By domain; "" is ONNX's own.

struct FunctionProto {
  std::string name, domain;
  std::vector<std::string> inputs, outputs, attributes;
  std::vector<AttributeProto> defaults;  // Attributes with a value.
  std::vector<NodeProto> nodes;
  Opsets opsets;
};

struct ModelProto {
  std::int64_t ir_version = 0;
  std::string producer, producer_version;
  Opsets opsets;
  GraphProto graph;
  std::vector<FunctionProto> functions;
};

}  // namespace onnx

// Throws Corruption, Unsupported.
onnx::ModelProto parse_onnx(std::string_view bytes, const std::string& name);
// A tensor that is a file of its own, as the files of ONNX's test suite are.
onnx::TensorProto parse_onnx_tensor(std::string_view bytes, const std::string& name);

}  // namespace plimsoll::internal
