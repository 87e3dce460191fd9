#include "plimsoll/io/hdf5_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/wire.h"
#include "plimsoll/io/internal/hdf5_bytes.h"
#include "plimsoll/io/internal/pinned_bytes.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kSuperblockBytes = 96, kMaxParts = 64, kMaxText = 60'000, kTreeHalf = 16;
constexpr std::uint16_t kSpace = 1, kType = 3, kFill = 5, kLayout = 8, kAttribute = 12, kSymbolTable = 17;

void append_bytes(std::string& out, std::initializer_list<int> values) {
  for (const int value : values) out += static_cast<char>(value);
}
void pad(std::string& out, std::size_t to = 8) { out.resize(round_up(out.size(), to), '\0'); }

std::string integer_type(std::size_t size, bool is_signed) {
  std::string out;
  append_bytes(out, {0x10, is_signed ? 8 : 0, 0, 0});
  append_number(out, static_cast<std::uint32_t>(size));
  append_number(out, std::uint16_t{0});
  append_number(out, static_cast<std::uint16_t>(size * 8));
  return out;
}

std::string float_type(DType dtype) {
  const int size = static_cast<int>(size_of(dtype));
  const int mantissa = dtype == f16 ? 10 : dtype == bf16 ? 7 : dtype == f32 ? 23 : 52;
  const int exponent = size * 8 - 1 - mantissa;
  std::string out;
  append_bytes(out, {0x11, 0x20, size * 8 - 1, 0});  // Little-endian, a hidden leading one, where the sign is.
  append_number(out, static_cast<std::uint32_t>(size));
  append_number(out, std::uint16_t{0});
  append_number(out, static_cast<std::uint16_t>(size * 8));
  append_bytes(out, {mantissa, exponent, 0, mantissa});
  append_number(out, static_cast<std::uint32_t>((1 << (exponent - 1)) - 1));
  return out;
}

// As h5py does.
std::string bool_type() {
  std::string out;
  append_bytes(out, {0x18, 2, 0, 0});
  append_number(out, std::uint32_t{1});
  out += integer_type(1, true);
  out += std::string("FALSE\0\0\0TRUE\0\0\0\0", 16);
  append_bytes(out, {0, 1});
  return out;
}

std::string type_of(DType dtype) {
  if (dtype == boolean) return bool_type();
  return is_floating(dtype) ? float_type(dtype) : integer_type(size_of(dtype), dtype != u8);
}

std::string space_of(const Shape& shape) {
  std::string out;
  append_bytes(out, {1, static_cast<int>(shape.rank()), 0, 0, 0, 0, 0, 0});
  for (const std::int64_t size : shape) append_number(out, static_cast<std::uint64_t>(size));
  return out;
}

std::string message(std::uint16_t kind, std::string body) {
  pad(body);
  std::string out;
  append_number(out, kind);
  append_number(out, static_cast<std::uint16_t>(body.size()));
  append_bytes(out, {0, 0, 0, 0});
  return out + body;
}

std::string text_attribute(const std::string& name, const std::string& value) {
  std::string type, body;
  append_bytes(type, {0x13, 0x11, 0, 0});  // Text in UTF-8, filled up with zeros.
  append_number(type, static_cast<std::uint32_t>(std::max<std::size_t>(value.size(), 1)));
  const std::string space = space_of(Shape::scalar());
  append_bytes(body, {1, 0});
  for (const std::size_t size : {name.size() + 1, type.size(), space.size()})
    append_number(body, static_cast<std::uint16_t>(size));
  body += name + '\0';
  pad(body);
  body += type + space + value;
  if (value.empty()) body += '\0';
  return message(kAttribute, std::move(body));
}

}  // namespace

struct Hdf5Writer::Node {
  std::map<std::string, std::unique_ptr<Node>> children;
  std::map<std::string, std::string> texts;
  std::unique_ptr<PinnedBytes> tensor;  // Null for a group.
  std::uint64_t data = 0;               // Where its bytes are.
};

Hdf5Writer::Hdf5Writer(const char* where) : where_(where), root_(std::make_unique<Node>()) {}
Hdf5Writer::Hdf5Writer(Hdf5Writer&&) noexcept = default;
Hdf5Writer::~Hdf5Writer() = default;

Hdf5Writer::Node& Hdf5Writer::at(const std::string& name) {
  Node* node = root_.get();
  if (name.empty()) return *node;
  std::size_t parts = 0;
  for (std::size_t from = 0; from <= name.size();) {
    const std::size_t end = std::min(name.find('/', from), name.size());
    const std::string part = name.substr(from, end - from);
    const bool is_bad = part.empty() || part == "." || part.find('\0') != std::string::npos || part.size() > kMaxText;
    if (is_bad || ++parts > kMaxParts)
      throw InvalidArgument(fmt::format("{}: \"{}\" is not a name in HDF5", where_, name.substr(0, 200)));
    if (node->tensor) throw InvalidArgument(fmt::format("{}: \"{}\": a tensor has the name of a group", where_, name));
    std::unique_ptr<Node>& child = node->children[part];
    if (!child) child = std::make_unique<Node>();
    node = child.get();
    from = end + 1;
  }
  return *node;
}

void Hdf5Writer::add(const std::string& name, const Tensor& tensor) {
  Node& node = at(name);
  if (&node == root_.get() || node.tensor || !node.children.empty())
    throw InvalidArgument(fmt::format("{}: the name \"{}\" is taken", where_, name));
  node.tensor = std::make_unique<PinnedBytes>(tensor);
  tensors_.push_back(&node);
}

void Hdf5Writer::add_group(const std::string& name) { at(name); }

void Hdf5Writer::set_text(const std::string& group, const std::string& attribute, const std::string& value) {
  if (attribute.size() + value.size() > kMaxText)
    throw InvalidArgument(fmt::format("{}: attribute \"{}\" has {} bytes; at most {} fit", where_,
                                      attribute.substr(0, 200), value.size(), kMaxText));
  at(group).texts[attribute] = value;
}

std::uint64_t Hdf5Writer::append(std::string_view block) {
  const std::uint64_t where = head_.size();
  head_ += block;
  pad(head_);
  return where;
}

std::uint64_t Hdf5Writer::write_header(const std::vector<std::string>& messages) {
  std::string body;
  for (const std::string& each : messages) body += each;
  std::string out;
  append_bytes(out, {1, 0});
  append_number(out, static_cast<std::uint16_t>(messages.size()));
  append_number(out, std::uint32_t{1});
  append_number(out, static_cast<std::uint32_t>(body.size()));
  append_number(out, std::uint32_t{0});
  return append(out + body);
}

Hdf5Writer::GroupPlaces Hdf5Writer::write_links(Node& group) {
  std::vector<std::uint64_t> headers;
  for (auto& [name, child] : group.children) headers.push_back(write_node(*child));

  std::string names(8, '\0');
  std::vector<std::uint64_t> name_at;
  for (const auto& [name, child] : group.children) {
    name_at.push_back(names.size());
    names += name + '\0';
    pad(names);
  }
  GroupPlaces places;
  places.heap = head_.size();
  std::string heap = "HEAP";
  append_bytes(heap, {0, 0, 0, 0});
  for (const std::uint64_t number : {std::uint64_t{names.size()}, std::uint64_t{1}, places.heap + 32})
    append_number(heap, number);
  append(heap + names);

  std::string tree(std::string("TREE") + std::string(2, '\0'));
  const std::size_t each = 2 * leaf_half_, lists = divide_up(headers.size(), each);
  append_number(tree, static_cast<std::uint16_t>(lists));
  append_number(tree, kHdf5Nowhere);
  append_number(tree, kHdf5Nowhere);
  append_number(tree, std::uint64_t{0});
  for (std::size_t from = 0; from < headers.size(); from += each) {
    const std::size_t end = std::min(from + each, headers.size());
    std::string list = "SNOD";
    append_bytes(list, {1, 0});
    append_number(list, static_cast<std::uint16_t>(end - from));
    for (std::size_t i = from; i < end; ++i) {
      for (const std::uint64_t number : {name_at[i], headers[i]}) append_number(list, number);
      list.append(24, '\0');
    }
    list.resize(8 + each * 40, '\0');
    append_number(tree, append(list));
    append_number(tree, name_at[end - 1]);
  }
  tree.resize(24 + (4 * kTreeHalf + 1) * 8, '\0');
  places.tree = append(tree);
  return places;
}

std::string Hdf5Writer::layout_message(const Node& node) const {
  std::string layout;
  append_bytes(layout, {3, 1});
  const std::uint64_t bytes = node.tensor->bytes().size();
  append_number(layout, bytes == 0 ? kHdf5Nowhere : node.data);
  append_number(layout, bytes);
  return message(kLayout, layout);
}

std::uint64_t Hdf5Writer::write_node(Node& node) {
  std::vector<std::string> messages;
  if (node.tensor) {
    std::string fill;
    append_bytes(fill, {2, 2, 2, 1, 0, 0, 0, 0});
    const ConstTensorView& view = node.tensor->view();
    messages = {message(kSpace, space_of(view.shape())), message(kType, type_of(view.dtype())), message(kFill, fill),
                layout_message(node)};
  } else {
    const GroupPlaces places = write_links(node);
    if (&node == root_.get()) root_places_ = places;
    std::string table;
    for (const std::uint64_t number : {places.tree, places.heap}) append_number(table, number);
    messages = {message(kSymbolTable, table)};
  }
  for (const auto& [name, value] : node.texts) messages.push_back(text_attribute(name, value));
  return write_header(messages);
}

// The size of the head does not depend on the addresses: it is laid out once to find the size, then with the right
// ones.
void Hdf5Writer::lay_out() {
  std::size_t most = 0;
  std::vector<const Node*> groups = {root_.get()};
  while (!groups.empty()) {
    const Node* const group = groups.back();
    groups.pop_back();
    most = std::max(most, group->children.size());
    for (const auto& [name, child] : group->children) groups.push_back(child.get());
  }
  const std::size_t per_list = (most + 2 * kTreeHalf - 1) / (2 * kTreeHalf);
  leaf_half_ = std::max<std::size_t>(4, (per_list + 1) / 2);
  if (leaf_half_ > 30'000) throw InvalidArgument(fmt::format("{}: {} names in one group", where_, most));
  std::uint64_t root = 0, end = 0;
  for (int pass = 0; pass < 2; ++pass) {
    end = pass == 0 ? 0 : round_up(head_.size(), kAlignment);
    for (Node* each : tensors_) {
      each->data = end;
      end = round_up(end + each->tensor->bytes().size(), kAlignment);
    }
    head_.assign(kSuperblockBytes, '\0');
    root = write_node(*root_);
  }
  pad(head_, kAlignment);
  end = std::max<std::uint64_t>(end, head_.size());
  std::string super("\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0", 16);
  append_number(super, static_cast<std::uint16_t>(leaf_half_));
  append_number(super, static_cast<std::uint16_t>(kTreeHalf));
  append_number(super, std::uint32_t{0});
  for (const std::uint64_t number : {std::uint64_t{0}, kHdf5Nowhere, end, kHdf5Nowhere, std::uint64_t{0}, root})
    append_number(super, number);
  append_number(super, std::uint64_t{1});  // The two places of the root group follow.
  append_number(super, root_places_.tree);
  append_number(super, root_places_.heap);
  std::memcpy(head_.data(), super.data(), super.size());
}

void Hdf5Writer::for_each_part(FunctionRef<void(std::span<const std::byte>)> f) {
  if (head_.empty()) lay_out();
  static constexpr std::byte kZeros[kAlignment] = {};
  f(std::as_bytes(std::span(head_)));
  for (const Node* each : tensors_) {
    const std::span<const std::byte> bytes = each->tensor->bytes();
    f(bytes);
    f(std::span(kZeros).first(static_cast<std::size_t>(round_up(bytes.size(), kAlignment) - bytes.size())));
  }
}

}  // namespace plimsoll::internal
