// Growth: shows which operations and scopes gained tensors or bytes since the last look; finds leaks in a running loop.
//
//   Growth growth;
//   for (...) { train_step(); growth.show(); }
//
//        gained   tensors   operation   scope
//       2.0 KiB        +5   Relu        training
//
// Tensors and buffers are grouped by operation, name scope and call site; a group is listed when it gained tensors or
// bytes, so work that frees what it allocates is not. Constructing a Growth is its first look.
// Thread safety: one thread at a time; it sees the tensors of all threads. Cost of a look: linear in the live tensors,
// about 20 ns for each, while other threads wait at their next tensor.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll {

struct GrowthRow {
  std::string op;
  std::string scope;
  std::string site;        // Place in the program, when recorded.
  int count = 0;           // Tensors gained, and buffers without a tensor.
  std::int64_t bytes = 0;  // Bytes gained.
};

class PLIMSOLL_API Growth {
 public:
  Growth();

  std::vector<GrowthRow> take();                   // Takes a look; most bytes first, then most tensors.
  std::vector<GrowthRow> show();                   // The same, and prints it as a table on standard output.
  std::vector<GrowthRow> show(std::ostream& out);  // Prints one line that says so when nothing grew.

 private:
  struct Sum {
    std::int64_t count = 0;
    std::int64_t bytes = 0;
  };
  using Groups = std::map<std::tuple<std::string, std::string, std::uint32_t>, Sum>;
  static Groups look();

  Groups last_;
};

}  // namespace plimsoll
