// Slabs: every tensor record and storage there ever was, for walks over the ledger, and the spare ones of no thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "plimsoll/tensor/storage.h"
#include "plimsoll/tensor/tensor_record.h"

namespace plimsoll {

struct Slabs {
  static Slabs& instance();  // Never destroyed.

  template <class T>
  struct Slab {
    std::unique_ptr<T[]> items;
    std::uint32_t count;
  };

  std::mutex mutex;  // Guards all below; taken before no other lock.
  std::vector<Slab<TensorRecord>> records;
  std::vector<Slab<Storage>> storages;
  TensorRecord* spare_records = nullptr;
  Storage* spare_storages = nullptr;
};

}  // namespace plimsoll
