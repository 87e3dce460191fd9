#include "plimsoll/model/onnx/onnx_proto.h"

#include <fmt/format.h>

#include <array>

#include "plimsoll/base/error.h"
#include "plimsoll/base/wire.h"

namespace plimsoll::internal {
namespace onnx {
namespace {

// Where a file's messages are read, with its name for errors.
class Parser {
 public:
  Parser(std::string_view file, const std::string& name) : file_(file), name_(name) {}

  // Calls `f` with each field of a message. Damage is reported with the message's offset.
  template <class F>
  void each(std::string_view message, F&& f) const {
    try {
      for (WireReader in(message); in.next();) f(in);
    } catch (const WireError& error) {
      corrupt(message, error.what());
    }
  }
  [[noreturn]] void corrupt(std::string_view message, std::string_view what) const {
    throw Corruption(fmt::format("\"{}\": {} (offset {})", name_, what, offset(message)));
  }
  std::uint64_t offset(std::string_view part) const { return static_cast<std::uint64_t>(part.data() - file_.data()); }
  const std::string& name() const noexcept { return name_; }

  void count_node() {
    if (++nodes_ > kMostNodes)
      throw Unsupported(fmt::format("\"{}\": has more than {} nodes, which is unsupported", name_, kMostNodes));
  }

  GraphProto graph(std::string_view message, int depth);
  NodeProto node(std::string_view message, int depth);
  AttributeProto attribute(std::string_view message, int depth);
  TensorProto tensor(std::string_view message) const;
  SparseTensorProto sparse(std::string_view message) const;
  ValueInfo value(std::string_view message) const;
  FunctionProto function(std::string_view message);
  void opset(std::string_view message, Opsets& opsets) const;

 private:
  void type(std::string_view message, ValueInfo& value) const;
  void shape(std::string_view message, ValueInfo& value) const;

  const std::string_view file_;
  const std::string& name_;
  std::size_t nodes_ = 0;
};

// Numbers that are packed or single.
template <class F>
void integers(const Parser& parser, const WireReader& in, F&& add) {
  if (!in.is_bytes()) return add(in.integer());
  std::string_view packed = in.bytes();
  for (std::uint64_t number = 0; !packed.empty(); add(static_cast<std::int64_t>(number)))
    if (!take_varint(packed, number)) parser.corrupt(in.bytes(), "a list of numbers ends too early");
}

void reals(const Parser& parser, const WireReader& in, std::vector<float>& out) {
  if (!in.is_bytes()) return out.push_back(in.single());
  const std::string_view packed = in.bytes();
  if (packed.size() % 4 != 0) parser.corrupt(packed, "a list of floats has a part of one");
  for (std::size_t i = 0; i < packed.size(); i += 4) out.push_back(load_number<float>(packed.data() + i));
}

std::string text(const WireReader& in) { return std::string(in.bytes()); }

GraphProto Parser::graph(std::string_view message, int depth) {
  if (depth > kMostDepth)
    throw Unsupported(fmt::format("\"{}\": graphs inside of graphs more than {} deep are unsupported (offset {})",
                                  name_, kMostDepth, offset(message)));
  GraphProto graph;
  each(message, [&](const WireReader& in) {
    if (in.field() == 1) graph.nodes.push_back(node(in.bytes(), depth));
    if (in.field() == 2) graph.name = text(in);
    if (in.field() == 5) graph.initializers.push_back(tensor(in.bytes()));
    if (in.field() == 11) graph.inputs.push_back(value(in.bytes()));
    if (in.field() == 12) graph.outputs.push_back(value(in.bytes()));
    if (in.field() == 15) graph.sparse_initializers.push_back(sparse(in.bytes()));
  });
  return graph;
}

NodeProto Parser::node(std::string_view message, int depth) {
  count_node();
  NodeProto node;
  each(message, [&](const WireReader& in) {
    if (in.field() == 1) node.inputs.push_back(text(in));
    if (in.field() == 2) node.outputs.push_back(text(in));
    if (in.field() == 3) node.name = text(in);
    if (in.field() == 4) node.op_type = text(in);
    if (in.field() == 5) node.attributes.push_back(attribute(in.bytes(), depth));
    if (in.field() == 7) node.domain = text(in);
  });
  if (node.domain == "ai.onnx") node.domain.clear();
  return node;
}

AttributeProto Parser::attribute(std::string_view message, int depth) {
  AttributeProto attribute;
  attribute.bytes = message;
  each(message, [&](const WireReader& in) {
    if (in.field() == 1) attribute.name = text(in);
    if (in.field() == 2) attribute.real = in.single();
    if (in.field() == 3) attribute.integer = in.integer();
    if (in.field() == 4) attribute.text = text(in);
    if (in.field() == 5) attribute.tensor = std::make_shared<TensorProto>(tensor(in.bytes()));
    if (in.field() == 6) attribute.graph = std::make_shared<GraphProto>(graph(in.bytes(), depth + 1));
    if (in.field() == 7) reals(*this, in, attribute.reals);
    if (in.field() == 8) integers(*this, in, [&](std::int64_t number) { attribute.integers.push_back(number); });
    if (in.field() == 9) attribute.texts.push_back(text(in));
    if (in.field() == 20) attribute.type = static_cast<std::int32_t>(in.integer());
    if (in.field() == 21) attribute.reference = text(in);
    if (in.field() == 22) attribute.sparse = std::make_shared<SparseTensorProto>(sparse(in.bytes()));
  });
  return attribute;
}

TensorProto Parser::tensor(std::string_view message) const {
  TensorProto tensor;
  tensor.offset = offset(message);
  const auto add = [&](const WireReader& in, std::vector<std::string_view>& packed, auto&& single) {
    if (in.is_bytes())
      packed.push_back(in.bytes());
    else
      tensor.numbers.push_back(single());
  };
  each(message, [&](const WireReader& in) {
    const auto bits = [&] { return static_cast<std::uint64_t>(in.fixed32()); };
    const auto wide_bits = [&] { return std::bit_cast<std::uint64_t>(in.real()); };
    const auto number = [&] { return in.number(); };
    if (in.field() == 1) integers(*this, in, [&](std::int64_t size) { tensor.dims.push_back(size); });
    if (in.field() == 2) tensor.type = static_cast<std::int32_t>(in.integer());
    if (in.field() == 4) add(in, tensor.floats, bits);
    if (in.field() == 5) add(in, tensor.int32s, number);
    if (in.field() == 6) tensor.strings.push_back(in.bytes());
    if (in.field() == 7 || in.field() == 11) add(in, tensor.int64s, number);
    if (in.field() == 8) tensor.name = text(in);
    if (in.field() == 9) tensor.raw = in.bytes();
    if (in.field() == 10) add(in, tensor.doubles, wide_bits);
    if (in.field() == 14) tensor.is_external = in.integer() == 1;
    if (in.field() == 13) {
      std::string key, value;
      each(in.bytes(), [&](const WireReader& entry) {
        if (entry.field() == 1) key = text(entry);
        if (entry.field() == 2) value = text(entry);
      });
      tensor.external[key] = value;
    }
  });
  if (tensor.dims.size() > kMaxRank)
    throw Unsupported(fmt::format("\"{}\": tensor \"{}\" has {} axes; more than {} are unsupported (offset {})", name_,
                                  tensor.name, tensor.dims.size(), kMaxRank, tensor.offset));
  for (const std::int64_t size : tensor.dims)
    if (size < 0) corrupt(message, fmt::format("tensor \"{}\" has a size of {}", tensor.name, size));
  return tensor;
}

SparseTensorProto Parser::sparse(std::string_view message) const {
  SparseTensorProto sparse;
  each(message, [&](const WireReader& in) {
    if (in.field() == 1) sparse.values = tensor(in.bytes());
    if (in.field() == 2) sparse.indices = tensor(in.bytes());
    if (in.field() == 3) integers(*this, in, [&](std::int64_t size) { sparse.dims.push_back(size); });
  });
  return sparse;
}

void Parser::shape(std::string_view message, ValueInfo& value) const {
  value.has_shape = true;
  each(message, [&](const WireReader& in) {
    if (in.field() != 1) return;
    Dim dim;
    each(in.bytes(), [&](const WireReader& part) {
      if (part.field() == 1) dim.size = part.integer();
      if (part.field() == 2) dim.name = text(part);
    });
    if (dim.size < 0) dim.size = kUnknownSize;
    value.dims.push_back(std::move(dim));
  });
  if (value.dims.size() > kMaxRank)
    throw Unsupported(fmt::format("\"{}\": value \"{}\" has {} axes; more than {} are unsupported (offset {})", name_,
                                  value.name, value.dims.size(), kMaxRank, offset(message)));
}

void Parser::type(std::string_view message, ValueInfo& value) const {
  each(message, [&](const WireReader& in) {
    if (in.field() != 1) return;
    value.is_tensor = true;
    each(in.bytes(), [&](const WireReader& part) {
      if (part.field() == 1) value.type = static_cast<std::int32_t>(part.integer());
      if (part.field() == 2) shape(part.bytes(), value);
    });
  });
}

ValueInfo Parser::value(std::string_view message) const {
  ValueInfo value;
  value.bytes = message;
  each(message, [&](const WireReader& in) {
    if (in.field() == 1) value.name = text(in);
    if (in.field() == 2) type(in.bytes(), value);
  });
  return value;
}

void Parser::opset(std::string_view message, Opsets& opsets) const {
  std::string domain;
  std::int64_t version = 1;
  each(message, [&](const WireReader& in) {
    if (in.field() == 1) domain = text(in);
    if (in.field() == 2) version = in.integer();
  });
  if (domain == "ai.onnx") domain.clear();
  if (version < 1) corrupt(message, fmt::format("operators of version {}", version));
  opsets[domain] = version;
}

FunctionProto Parser::function(std::string_view message) {
  FunctionProto function;
  each(message, [&](const WireReader& in) {
    if (in.field() == 1) function.name = text(in);
    if (in.field() == 4) function.inputs.push_back(text(in));
    if (in.field() == 5) function.outputs.push_back(text(in));
    if (in.field() == 6) function.attributes.push_back(text(in));
    if (in.field() == 7) function.nodes.push_back(node(in.bytes(), 1));
    if (in.field() == 9) opset(in.bytes(), function.opsets);
    if (in.field() == 10) function.domain = text(in);
    if (in.field() == 11) function.defaults.push_back(attribute(in.bytes(), 1));
  });
  if (function.domain == "ai.onnx") function.domain.clear();
  return function;
}

struct TypeName {
  std::int32_t type;
  const char* name;
};
constexpr std::array<TypeName, 17> kTypeNames = {{{1, "float32"},
                                                  {2, "uint8"},
                                                  {3, "int8"},
                                                  {4, "uint16"},
                                                  {5, "int16"},
                                                  {6, "int32"},
                                                  {7, "int64"},
                                                  {8, "string"},
                                                  {9, "bool"},
                                                  {10, "float16"},
                                                  {11, "float64"},
                                                  {12, "uint32"},
                                                  {13, "uint64"},
                                                  {14, "complex64"},
                                                  {15, "complex128"},
                                                  {16, "bfloat16"},
                                                  {0, "undefined"}}};

}  // namespace

std::string element_type_name(std::int32_t type) {
  for (const TypeName& each : kTypeNames)
    if (each.type == type) return each.name;
  return fmt::format("number {}", type);
}

std::optional<DType> dtype_of(std::int32_t type) noexcept {
  switch (type) {
    case kFloat:
      return f32;
    case kUint8:
      return u8;
    case kInt8:
      return i8;
    case kInt16:
      return i16;
    case kInt32:
      return i32;
    case kInt64:
      return i64;
    case kBool:
      return boolean;
    case kFloat16:
      return f16;
    case kDouble:
      return f64;
    case kBfloat16:
      return bf16;
    default:
      return {};
  }
}

std::int32_t element_type_of(DType dtype) noexcept {
  for (std::int32_t type = kFloat; type <= kBfloat16; ++type)
    if (dtype_of(type) == dtype) return type;
  return kUndefined;
}

Shape ValueInfo::shape() const {
  if (!has_shape) return {};
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : dims) sizes.push_back(dim.size);
  return Shape(sizes);
}

}  // namespace onnx

onnx::ModelProto parse_onnx(std::string_view bytes, const std::string& name) {
  onnx::Parser parser(bytes, name);
  onnx::ModelProto model;
  bool has_graph = false;
  parser.each(bytes, [&](const WireReader& in) {
    if (in.field() == 1) model.ir_version = in.integer();
    if (in.field() == 2) model.producer = std::string(in.bytes());
    if (in.field() == 3) model.producer_version = std::string(in.bytes());
    if (in.field() == 8) parser.opset(in.bytes(), model.opsets);
    if (in.field() == 25) model.functions.push_back(parser.function(in.bytes()));
    if (in.field() == 7) {
      model.graph = parser.graph(in.bytes(), 0);
      has_graph = true;
    }
  });
  if (!has_graph || model.ir_version < 1) parser.corrupt(bytes, "there is no graph in it; is this an ONNX file?");
  if (model.opsets.empty()) model.opsets[""] = 1;  // Files of IR versions 1 and 2.
  return model;
}

onnx::TensorProto parse_onnx_tensor(std::string_view bytes, const std::string& name) {
  return onnx::Parser(bytes, name).tensor(bytes);
}

}  // namespace plimsoll::internal
