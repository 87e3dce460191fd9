// Hdf5Writer: writes an HDF5 file of groups and contiguous tensors, in the format of the oldest libraries.
//
//   Hdf5Writer writer("save_keras");
//   writer.add("layers/dense/vars/0", kernel);
//   writer.set_text("layers/dense/vars", "name", "dense");
//   writer.for_each_part([&](std::span<const std::byte> part) { file.write(part); });
//
// Layout: superblock 0; for each group a header, a heap of names, a tree with one node and its lists; a header for each
// tensor; then the tensors' bytes, each at a multiple of 64. Parts come in order, and may be requested several times.
// Cost: the bytes before the tensors are held in memory, about 300 for each tensor and 1,500 for each group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

class Hdf5Writer {
 public:
  static constexpr std::uint64_t kAlignment = 64;  // Of tensors' bytes, relative to the start of the file.

  explicit Hdf5Writer(const char* where);  // Named in errors.
  Hdf5Writer(Hdf5Writer&&) noexcept;
  ~Hdf5Writer();

  // Groups are made as needed. The tensor's bytes stay pinned until the writer ends. Throws InvalidArgument for a name
  // that exists, that has empty parts, zero bytes or more than 64 parts.
  void add(const std::string& name, const Tensor& tensor);
  void add_group(const std::string& name);
  // Throws InvalidArgument for more than 60,000 bytes.
  void set_text(const std::string& group, const std::string& attribute, const std::string& value);

  // All bytes, in order. Nothing may be added afterwards.
  void for_each_part(FunctionRef<void(std::span<const std::byte>)> f);

 private:
  struct Node;
  struct GroupPlaces {
    std::uint64_t tree = 0, heap = 0;
  };
  Node& at(const std::string& name);
  void lay_out();
  std::uint64_t append(std::string_view block);  // Appends to the head; returns the position.
  std::uint64_t write_node(Node& node);          // Writes its header, last; returns the position.
  GroupPlaces write_links(Node& group);          // Names, lists and tree.
  std::string layout_message(const Node& node) const;
  std::uint64_t write_header(const std::vector<std::string>& messages);

  const char* where_;
  std::unique_ptr<Node> root_;
  GroupPlaces root_places_;
  std::vector<Node*> tensors_;  // In the order of their bytes.
  std::string head_;            // Up to the first tensor's bytes.
  std::size_t leaf_half_ = 4;   // A list holds twice as many links.
};

}  // namespace plimsoll::internal
