#include "plimsoll/distributed/unavailable.h"

namespace plimsoll {

Unavailable::~Unavailable() = default;

}  // namespace plimsoll
