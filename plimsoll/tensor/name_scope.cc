#include "plimsoll/tensor/name_scope.h"

#include <fmt/format.h>

#include <atomic>
#include <string>

#include "plimsoll/base/error.h"
#include "plimsoll/base/names.h"
#include "plimsoll/tensor/scope_namer.h"
#include "plimsoll/tensor/thread_context.h"

namespace plimsoll {
namespace {

std::atomic<ScopeNamer> scope_namer{nullptr};

const char* interned_name(const char* outer, std::string_view name) {
  const std::string full = *outer ? fmt::format("{}/{}", outer, name) : std::string(name);
  const ScopeNamer namer = scope_namer.load(std::memory_order_relaxed);
  Tracer* const tracer = ThreadContext::current().tracer;
  return intern(namer && tracer ? namer(*tracer, full) : full);
}

}  // namespace

void internal::set_scope_namer(ScopeNamer namer) noexcept { scope_namer = namer; }

NameScope::NameScope(std::string_view name, CallSite site)
    : before_(ThreadContext::current().name_scope), site_before_(ThreadContext::current().site) {
  if (name.empty() || name.front() == '/' || name.back() == '/')
    throw InvalidArgument(fmt::format("NameScope: \"{}\" is not a name; give one without '/' at its ends", name));
  ThreadContext::current().name_scope = interned_name(before_, name);
  if (const std::uint32_t number = site_number(site)) ThreadContext::current().site = number;
}

NameScope::~NameScope() {
  ThreadContext::current().name_scope = before_;
  ThreadContext::current().site = site_before_;
}

std::string_view NameScope::current() noexcept { return ThreadContext::current().name_scope; }

}  // namespace plimsoll
