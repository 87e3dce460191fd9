// live_tensors(): every live tensor, and what the ledger knows about it.
//
//   for (const LiveTensor& t : live_tensors()) std::cout << t.op << ' ' << t.shape << ' ' << t.bytes << '\n';
//
// One row per tensor; a view's row has bytes 0. Buffers that no tensor refers to, held by a tape, a cache or a running
// kernel, have rows of their own. When only views are left on a buffer, one of them carries its bytes. The rows add up
// to memory().num_bytes, exactly when no other thread makes or drops tensors meanwhile.
// Thread safety: any thread; the others wait at their next tensor until the list is made. Cost: linear, about 100 ns
// per row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/dtype.h"
#include "plimsoll/base/shape.h"

namespace plimsoll {

struct LiveTensor {
  std::uint64_t id = 0;  // The tensor's id; 0 for a buffer without one.
  std::string name;      // The user's, "" for none.
  std::string op;        // The operation that made it.
  std::string scope;     // The name scope it was made in.
  Shape shape;           // Unset for a buffer without a tensor whose shape the ledger does not know.
  DType dtype = f32;
  std::size_t bytes = 0;   // Of its buffer; 0 for a view, and for memory that is not ours or not allocated yet.
  std::string category;    // "parameters", "activations", ...
  std::uint32_t step = 0;  // Training step it was made in.
  std::string site;        // Where in the program it was made, when that is recorded; else "".
};

PLIMSOLL_API std::vector<LiveTensor> live_tensors();

}  // namespace plimsoll
