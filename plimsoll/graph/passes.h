// Passes: transformations of a graph before it runs; each can be switched off.
//
//   function(f, {.passes = {.reorder = false}}); Session(g, {.passes = {.fuse_attention = true}})
#pragma once

namespace plimsoll {

// Those that are on by default keep the results to the bit; the last two agree to rounding and must be requested.
struct Passes {
  bool prune = true;     // Drops what no result needs; off: computes everything that the feeds allow.
  bool lean = true;      // Does not compute what only gradients read when no gradient is requested.
  bool fold = true;      // Runs operations on constants once.
  bool merge = true;     // Runs the same operation on the same operands once.
  bool in_place = true;  // Results overwrite operands that nobody needs any more.
  bool reorder = true;   // Uses another order when it needs less memory.
  // Runs consecutive elementwise operations block by block, in one pass.
  bool fuse_elementwise = true;
  bool fuse_dense = true;        // A product with its bias and activation becomes one operation.
  bool fuse_convolution = true;  // The same for a convolution with its bias and activation.
  // softmax(scale q k^T + mask) v, when written out, never holds all scores, provided nothing else reads them.
  bool fuse_attention = false;
  bool fold_norm = false;  // A batch norm with given moments becomes part of the preceding convolution.
};

}  // namespace plimsoll
