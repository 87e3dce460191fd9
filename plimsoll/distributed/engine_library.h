// Engines in separate libraries: libplimsoll_mpi.so, searched for next to this library (or this program), then where
// the system looks for libraries.
#pragma once

#include <memory>
#include <string>

#include "plimsoll/distributed/communicator.h"

namespace plimsoll::distributed {

// Joins the job. Throws NotFound when the library does not exist (with what to install), Unsupported for one of another
// version, Unavailable when it cannot join.
std::shared_ptr<Communicator> load_engine(const std::string& name);

}  // namespace plimsoll::distributed
