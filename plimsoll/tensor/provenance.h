// Provenance: the operation, the name scope and the place in the program that made a tensor, as one number.
//
//   const std::uint32_t number = Provenance::number_of({"MatMul", "encoder", 0});
//   Provenance::of(number).op                     // "MatMul"
//
// There are as many as the program has operations in scopes; like names, they are never freed.
// Thread safety: any thread. Cost: a few loads for of(); a lock for number_of(), so threads remember what they used
// last (TensorThread).
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/base/api.h"

namespace plimsoll {

struct Provenance {
  const char* op = "";     // Text that lives as long as the program, compared by its address.
  const char* scope = "";  // The same.
  std::uint32_t site = 0;  // See call_site.h.
  bool operator==(const Provenance&) const = default;

  // Throws std::bad_alloc. After a million others it returns 0, which stands for nothing.
  static std::uint32_t number_of(const Provenance& provenance);
  PLIMSOLL_API static const Provenance& of(std::uint32_t number) noexcept;
  static std::size_t num_bytes() noexcept;  // Kept for all of them.
};

}  // namespace plimsoll
