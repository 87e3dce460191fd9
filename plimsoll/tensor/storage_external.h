// The data that only few storages have: wrapped, lazy, parked and symbolic ones.
#pragma once

#include "plimsoll/tensor/parked.h"
#include "plimsoll/tensor/storage.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll {

struct Storage::External {
  void* memory = nullptr;
  std::function<void(void*)> deleter;
  BlockLabel label;                     // For a lazy one.
  Fill fill;                            // The same.
  std::unique_ptr<ParkedBytes> parked;  // For one that is lazy because it is parked, or was parked before.
  std::function<void(void*)> load;      // For one that was made with bytes elsewhere.
  SymbolicValue symbolic;               // For a symbolic one.
};

}  // namespace plimsoll
