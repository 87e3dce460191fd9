// Passes: what is done to a graph before it runs; all of it on unless switched off.
#pragma once

namespace plimsoll {

// What is done to a graph before it runs. All of it leaves the results as they are, to the bit.
struct Passes {
  bool lean = true;      // What only gradients read is not computed where no gradient is asked for.
  bool fold = true;      // Operations on constants are done once.
  bool merge = true;     // The same operation on the same operands is done once.
  bool in_place = true;  // Results take the place of operands that nobody needs any more.
  bool reorder = true;   // Another order, when it needs less memory.
};

}  // namespace plimsoll
