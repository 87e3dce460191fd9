#include "plimsoll/graph/park_variable.h"

#include "plimsoll/tensor/parked.h"

namespace plimsoll::internal {

bool park_variable(const Variable& variable, SpillFile& file) {
  if (variable.nbytes() < Parking::kLeastBytes) return false;
  const StorageRef bytes = variable.share_bytes();
  const std::unique_lock<std::mutex> lock = variable.lock();  // Nobody takes another reference meanwhile.
  if (bytes->is_resident() && bytes->is_on_host() && Parking::is_own(*bytes, 2)) Parking::park(*bytes, file);
  return !bytes->is_resident();
}

void unpark_variable(const Variable& variable) {
  const StorageRef bytes = variable.share_bytes();
  bytes->keep_resident();
  if (Parking::bytes_of(*bytes)) bytes->resident();
  const std::unique_lock<std::mutex> lock = variable.lock();
  std::unique_ptr<ParkedBytes> slot;
  if (bytes->is_resident() && Parking::is_own(*bytes, 2)) Parking::exchange(*bytes, slot);
}

}  // namespace plimsoll::internal
