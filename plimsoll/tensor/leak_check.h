// LeakCheck: finds tensors that were made since and should be gone.
//
//   LeakCheck check;
//   train_step();
//   EXPECT_EQ(check.leaked(), 0u);    // how many tensors of since then are alive
//   check.expect_none();              // throws Leak, which lists them
//
// Tensors count by when they were made, on any thread: dropping older ones hides nothing. Variables count like other
// tensors. Works inside any test framework. Checks may nest and overlap.
// Thread safety: any thread. Cost: to make one, an instant in which the other threads stand at their gates; to ask,
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
  // Throws Leak when leaked() is not 0; the text has the largest ten: operation, shape, bytes, scope.
  void expect_none() const;

 private:
  std::uint32_t era_;
};

}  // namespace plimsoll
