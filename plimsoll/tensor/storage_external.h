// What only few storages have: those of wrapped memory, lazy, parked and symbolic ones.
#pragma once

#include "plimsoll/tensor/parked.h"
#include "plimsoll/tensor/storage.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll {

struct Storage::External {
  void* memory = nullptr;
  std::function<void(void*)> deleter;
  BlockLabel label;                     // Of a lazy one.
  Fill fill;                            // The same.
  std::unique_ptr<ParkedBytes> parked;  // Of one that is lazy because it was parked, or was so before.
  SymbolicValue symbolic;               // Of a symbolic one.
};

}  // namespace plimsoll
