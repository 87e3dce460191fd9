// Passes: what is done to a graph before it runs; each can be switched off.
//
//   function(f, {.passes = {.reorder = false}}); Session(g, {.passes = {.fuse_attention = true}})
#pragma once

namespace plimsoll {

// Those that are on leave the results as they are, to the bit; the last two agree to rounding, and are asked for.
struct Passes {
  bool prune = true;     // What no result needs is left out; off: all that can be computed from what is fed.
  bool lean = true;      // What only gradients read is not computed where no gradient is asked for.
  bool fold = true;      // Operations on constants are done once.
  bool merge = true;     // The same operation on the same operands is done once.
  bool in_place = true;  // Results take the place of operands that nobody needs any more.
  bool reorder = true;   // Another order, when it needs less memory.
  // Elementwise operations that follow each other are done block by block, in one pass.
  bool fuse_elementwise = true;
  bool fuse_dense = true;        // A product, its bias and activation are one operation.
  bool fuse_convolution = true;  // A convolution, its bias and activation the same.
  // softmax(scale q k^T + mask) v, written out as such, never holds all scores. Where nobody else reads them.
  bool fuse_attention = false;
  bool fold_norm = false;  // A batch norm with given moments becomes part of the convolution before it.
};

}  // namespace plimsoll
