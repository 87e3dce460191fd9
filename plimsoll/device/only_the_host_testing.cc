// Tests of settings expect a machine with one device, whatever this one has. Set before main(): kinds are listed once.
#include <cstdlib>

namespace plimsoll {
namespace {

[[maybe_unused]] const bool is_set = setenv("PLIMSOLL_TEST_DEVICE", "CPU", 0) == 0;

}  // namespace
}  // namespace plimsoll
