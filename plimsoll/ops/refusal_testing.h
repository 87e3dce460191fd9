// refusal: the text that something is refused with.
//
//   EXPECT_EQ(refusal([&] { matmul(a, b); }), "matmul: inner sizes differ: ...");
#pragma once

#include <string>

#include "plimsoll/base/error.h"

namespace plimsoll {

template <class Kind = InvalidArgument, class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const Kind& error) {
    return error.what();
  }
  return "not refused";
}

}  // namespace plimsoll
