// LeakCheck: finds tensors that were made after it and should be gone.
//
//   LeakCheck check;
//   train_step();
//   EXPECT_EQ(check.leaked(), 0u);    // live tensors made since then
//   check.expect_none();              // throws Leak, which lists them
//
// Tensors count by when they were made, on any thread, so dropping older ones hides nothing. Variables count like other
// tensors. Works inside any test framework. Checks may nest and overlap.
// Thread safety: any thread. Cost: constructing one stops the other threads at their gates for a moment; a check is
// linear in the number of live tensors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/base/api.h"

namespace plimsoll {

class PLIMSOLL_API LeakCheck {
 public:
  LeakCheck();

  std::size_t leaked() const;
  // Throws Leak when leaked() is not 0; the text lists the ten largest: operation, shape, bytes, scope.
  void expect_none() const;

 private:
  std::uint32_t era_;
};

}  // namespace plimsoll
