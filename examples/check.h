// check: an example asserts what it claims; the program exits with 1 when a claim is false.
#pragma once

#include <cstdlib>
#include <iostream>

inline void check(bool holds, const char* claim) {
  if (holds) return;
  std::cerr << "false: " << claim << "\n";
  std::exit(1);
}
