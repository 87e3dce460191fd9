// who_holds(): what keeps a tensor and its bytes alive.
//
//   Holders who = who_holds(x);
//   std::cout << who.to_string();
//   who.paths();                    // {"tensor (1, 4) <- variable \"kernel\": its value", "tensor (1, 4) <- 2
//   handles"} who.write_svg("holders.svg");   // or write_dot(), for Graphviz
//
// Holders of the bytes: other tensors on the same buffer with their own holders, variables, tapes and everything else
// enrolled as a Holder, pinned data views. Holders of the tensor: handles of the program (including the one passed in)
// and keep(); the tidy scope it was made in is listed too, because it would release the tensor.
// Thread safety: any thread; exact when no other thread uses the buffer meanwhile. The result is text and holds
// nothing. Cost: linear in the number of live tensors, while other threads wait at their next tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

class PLIMSOLL_API Holders {
 public:
  // One for each holder, from the tensor outwards.
  std::vector<std::string> paths() const;
  std::string to_string() const;  // The same as an indented list.

  // Throw NotFound when the directory does not exist, Error when the file cannot be written.
  void write_dot(const std::filesystem::path& path) const;
  void write_svg(const std::filesystem::path& path) const;
  std::string to_dot() const;
  std::string to_svg() const;

  enum class Kind : std::uint8_t { kBuffer, kTensor, kHolder, kHandles, kScope };
  struct Node {
    Kind kind;
    std::string title;   // "tensor (1, 4)", "variable \"kernel\"", "2 handles"
    std::string detail;  // "16 B, made by Relu", "" for none.
    std::size_t held;    // The node it holds; its own number for the first.
    bool asked = false;  // The tensor that was asked for.
  };
  // The nodes of the pictures: each holds another one; the first is the buffer, or a disposed tensor.
  const std::vector<Node>& nodes() const noexcept { return nodes_; }

 private:
  friend class HolderSearch;
  std::vector<std::size_t> holders_of(std::size_t node) const;
  std::size_t asked() const noexcept;
  void append_list(std::string& out, std::size_t node, std::size_t depth) const;

  std::vector<Node> nodes_;
};

// Works for a disposed tensor, and says that it is. Throws InvalidArgument for an empty handle.
PLIMSOLL_API Holders who_holds(const Tensor& tensor);

}  // namespace plimsoll
