// The errors Plimsoll throws; all of them derive from `Error`. Each says where, what (with numbers) and what to do:
//   matmul: inner sizes differ: left [8, 32] has 32, right [16, 4] has 16
//
//   try { pl::zeros({1 << 30}); } catch (const pl::OutOfMemory& e) { std::cerr << e.what(); }
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll {

class PLIMSOLL_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Error() override;
};

// The caller's argument is wrong: a shape, a size, an index, a name that cannot be parsed.
class PLIMSOLL_API InvalidArgument : public Error {
 public:
  using Error::Error;
  ~InvalidArgument() override;
};

// The argument is fine but the call comes at the wrong time: a setting after the start, a closed session, a second
// gradient.
class PLIMSOLL_API FailedPrecondition : public Error {
 public:
  using Error::Error;
  ~FailedPrecondition() override;
};

// Nothing has the name that was asked for.
class PLIMSOLL_API NotFound : public Error {
 public:
  using Error::Error;
  ~NotFound() override;
};

// A file or stream is damaged; the message has the offset or line.
class PLIMSOLL_API Corruption : public Error {
 public:
  using Error::Error;
  ~Corruption() override;
};

// Valid, but not supported here.
class PLIMSOLL_API Unsupported : public Error {
 public:
  using Error::Error;
  ~Unsupported() override;
};

// A tensor was used after dispose() or after the end of its scope.
class PLIMSOLL_API Disposed : public Error {
 public:
  using Error::Error;
  ~Disposed() override;
};

// A LeakCheck found tensors that should have been released.
class PLIMSOLL_API Leak : public Error {
 public:
  using Error::Error;
  ~Leak() override;
};

// Live blocks of one kind that hold memory when a request is refused, most bytes first.
struct MemoryHolder {
  std::string op;        // The operation or tag that made them.
  std::string scope;     // The name scope they were made in, "" outside any.
  std::string category;  // "parameters", "activations", ...
  std::string shape;     // The largest one's, "" when it has none.
  std::size_t bytes = 0;
  std::size_t count = 0;
};

// One rung of the pressure ladder, climbed before refusing.
struct PressureRung {
  std::string name;             // "flush deferred releases", "empty caches", ...
  std::size_t bytes_freed = 0;  // 0 when it had nothing to free.
};

// What an OutOfMemory reports.
struct OutOfMemoryDetails {
  std::string what;
  std::size_t requested = 0;  // Bytes the caller asked for.
  std::size_t limit = 0;      // The limit of the budget or device that refused.
  std::size_t in_use = 0;     // Bytes charged there at that moment.
  // With this limit in place of `limit` the refused request succeeds, also when the program runs again from its start.
  // It does not cover the requests that would have followed. For a budget it is the smallest such limit, to a block (64
  // bytes). For a device it is the smallest to a page, provided that one thread made all requests so far and that there
  // were at most 65,536 of them, frees included: the library then replays them under other limits. Otherwise it is an
  // estimate on the high side, because blocks share pages differently under another limit: it adds half of the space
  // they leave unused on their pages, and four pages.
  std::size_t smallest_sufficient_limit = 0;
  std::vector<MemoryHolder> holders;
  std::vector<PressureRung> tried;
};

// The work does not fit. Nothing was allocated, charged or changed by the call that threw it.
class PLIMSOLL_API OutOfMemory : public Error {
 public:
  explicit OutOfMemory(OutOfMemoryDetails details);
  ~OutOfMemory() override;

  std::size_t requested() const noexcept { return details_->requested; }
  std::size_t limit() const noexcept { return details_->limit; }
  std::size_t in_use() const noexcept { return details_->in_use; }
  std::size_t smallest_sufficient_limit() const noexcept { return details_->smallest_sufficient_limit; }
  const std::vector<MemoryHolder>& holders() const noexcept { return details_->holders; }
  const std::vector<PressureRung>& tried() const noexcept { return details_->tried; }

 private:
  std::shared_ptr<const OutOfMemoryDetails> details_;  // Shared: copying an exception must not throw.
};

// Reports a bug in the library, with its place, and ends the program. Never used for bad input.
[[noreturn]] PLIMSOLL_API void check_failed(const char* file, int line, const char* condition);
#define PLIMSOLL_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::plimsoll::check_failed(__FILE__, __LINE__, #condition))

}  // namespace plimsoll
