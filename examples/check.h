// check: an example asserts what it claims; the program ends with 1 when it is not so.
#pragma once

#include <cstdlib>
#include <iostream>

inline void check(bool holds, const char* claim) {
  if (holds) return;
  std::cerr << "not so: " << claim << "\n";
  std::exit(1);
}
