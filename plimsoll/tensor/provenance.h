// Provenance: by which operation, in which name scope and where in the program a tensor was made, as one number.
//
//   const std::uint32_t number = Provenance::number_of({"MatMul", "encoder", 0});
//   Provenance::of(number).op                     // "MatMul"
//
// There are as many as the program has operations in scopes: they are kept for good, as the names are.
// Thread safety: any thread. Cost: of() some loads; number_of() a lock, so threads remember what they used last
// (TensorThread).
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

  // Throws std::bad_alloc. After a million others it is 0, which says nothing.
  static std::uint32_t number_of(const Provenance& provenance);
  PLIMSOLL_API static const Provenance& of(std::uint32_t number) noexcept;
  static std::size_t num_bytes() noexcept;  // Kept for all of them.
};

}  // namespace plimsoll
