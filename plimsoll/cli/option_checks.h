// Checks of options: what is wrong with a value, in words, before anything is read (exit code 2).
//
//   command->add_option("--budget", budget)->check(size_check())->type_name("SIZE");
//   command->add_option("--batch", batch)->check(at_least(1));
#pragma once

#include <CLI/CLI.hpp>

namespace plimsoll {

CLI::Validator size_check(std::size_t least = 1);  // Bytes, as parse_bytes reads them.
CLI::Validator at_least(long long least);          // A whole number.
CLI::Validator positive_number();

}  // namespace plimsoll
