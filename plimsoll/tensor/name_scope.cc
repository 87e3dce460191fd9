#include "plimsoll/tensor/name_scope.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/base/names.h"
#include "plimsoll/tensor/thread_context.h"

namespace plimsoll {

NameScope::NameScope(std::string_view name, CallSite site)
    : before_(ThreadContext::current().name_scope), site_before_(ThreadContext::current().site) {
  if (name.empty() || name.front() == '/' || name.back() == '/')
    throw InvalidArgument(fmt::format("NameScope: \"{}\" is no name; give one without '/' at its ends", name));
  ThreadContext::current().name_scope = *before_ ? intern(fmt::format("{}/{}", before_, name)) : intern(name);
  if (const std::uint32_t number = site_number(site)) ThreadContext::current().site = number;
}

NameScope::~NameScope() {
  ThreadContext::current().name_scope = before_;
  ThreadContext::current().site = site_before_;
}

std::string_view NameScope::current() noexcept { return ThreadContext::current().name_scope; }

}  // namespace plimsoll
