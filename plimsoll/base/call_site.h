// CallSite: a place in the source. As a default argument it records where the caller is.
//
//   explicit NameScope(std::string_view name, CallSite site = CallSite::here());
//   site_text(site_number(site));                              // "src/train.cc:42"
//
// Places get small permanent numbers, so that a label stores one in four bytes. Thread safety: any thread. Cost: a few
// nanoseconds for a place that the thread used recently, else a lookup under a lock.
#pragma once

#include <cstdint>

#include "plimsoll/base/api.h"

namespace plimsoll {

struct CallSite {
  const char* file = "";
  std::uint32_t line = 0;

  static constexpr CallSite here(const char* file = __builtin_FILE(), std::uint32_t line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

// Returns 0 for no place, for places in this library's own sources (users look for leaks in their code), and beyond
// 65535.
PLIMSOLL_API std::uint32_t site_number(const CallSite& site) noexcept;

// The file, with its folder, and the line; "" for 0. Valid as long as the process lives.
PLIMSOLL_API const char* site_text(std::uint32_t number) noexcept;

}  // namespace plimsoll
