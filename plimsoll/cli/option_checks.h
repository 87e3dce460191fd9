// Checks of options: they say what is wrong with a value before anything is read (exit code 2).
//
//   command.option("--budget", budget, "Most bytes to use").check(size_check()).value("SIZE");
//   command.option("--batch", batch, "Examples in a step").check(at_least(1));
#pragma once

#include "plimsoll/cli/options.h"

namespace plimsoll::internal {

OptionCheck size_check(std::size_t least = 1);         // Bytes, as parse_bytes reads them.
OptionCheck at_least(long long least);                 // A whole number.
OptionCheck between(long long least, long long most);  // The same, both ends included.
OptionCheck positive_number();
OptionCheck number_at_least(double least);
OptionCheck fraction();  // Above 0 and below 1.

}  // namespace plimsoll::internal
