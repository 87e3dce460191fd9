// NameScope: everything made inside carries the name in every memory report.
//
//   { NameScope outer("encoder"); NameScope inner("layer1"); h = relu(x); }     // h: scope "encoder/layer1"
//
// It also records the place in the source where the scope begins: the "site" of reports.
// Names are never freed: use few, not one per step. Thread safety: a scope belongs to its thread. Cost: about 30 ns.
#pragma once

#include <string_view>

#include "plimsoll/base/api.h"
#include "plimsoll/base/call_site.h"

namespace plimsoll {

class PLIMSOLL_API NameScope {
 public:
  // Throws InvalidArgument for an empty name and for one that begins or ends with '/'.
  explicit NameScope(std::string_view name, CallSite site = CallSite::here());
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

  static std::string_view current() noexcept;  // "encoder/layer1"; "" outside any.

 private:
  const char* before_;
  std::uint32_t site_before_;
};

}  // namespace plimsoll
