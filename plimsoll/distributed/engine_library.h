// Engines that are libraries of their own: libplimsoll_mpi.so, looked for beside this library (or this program), then
// where the system looks for libraries.
#pragma once

#include <memory>
#include <string>

#include "plimsoll/distributed/communicator.h"

namespace plimsoll::distributed {

// Joins the job. Throws NotFound when there is no such library (with what to install), Unsupported for one of another
// version, Unavailable when it cannot join.
std::shared_ptr<Communicator> load_engine(const std::string& name);

}  // namespace plimsoll::distributed
