// The smallest program that uses an installed Plimsoll: reads a byte size, and catches one of our errors.
#include <plimsoll/plimsoll.h>

#include <iostream>

namespace pl = plimsoll;

int main() {
  using namespace pl::literals;
  const std::size_t budget = pl::parse_bytes("24MiB");
  const pl::Shape shape = {1024, 1024, 6};
  std::cout << "a budget of " << pl::format_bytes(budget) << " holds one " << pl::f32 << " tensor of shape " << shape
            << ": " << pl::format_bytes(shape.size() * size_of(pl::f32)) << "\n";
  try {
    pl::parse_bytes("a lot");
  } catch (const pl::InvalidArgument& error) {
    std::cout << "refused: " << error.what() << "\n";
    return budget == 24_MiB ? 0 : 1;
  }
  return 1;
}
