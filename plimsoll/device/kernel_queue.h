// KernelQueue: receives the work of ops on a device with kernels of its own. One queue, in order.
//
//   bool Scale::launch(KernelQueue& queue, const OpRun& run) const noexcept {
//     return
//     queue.run(KernelCall("scale").out(run.out[0].bytes()).in(run.in[0].bytes()).number(by_).items(run.out[0].size()));
//   }
//
// A call names a kernel, its arguments and the number of work items. run() returns before the kernel has run, and
// returns false when the device has no kernel of that name: the caller then does the work on the host. Later errors are
// remembered and thrown by the next call that waits (backend.h).
//
// Indices that only the device knows are checked by it, in the queue's order, so that nobody waits: check_indices()
// leaves the first one that is refused in a word, which read_word() reads later (index_checks.h). Kernels that use
// indices access nothing outside of their operands, whatever the indices are. A call with a guard does nothing once
// its word is set: so a step whose indices are refused changes no variable.
// Thread safety: any thread; the calls of one thread keep their order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

struct KernelArgument {
  enum class Kind : std::uint8_t { kAddress, kInteger, kNumber, kWord } kind = Kind::kAddress;
  const void* address = nullptr;  // Of the device.
  std::int32_t integer = 0;       // Or the number of a word.
  float number = 0;
};

// Built by its methods; holds no memory of its own.
class KernelCall {
 public:
  static constexpr std::size_t kMostArguments = 32;
  static constexpr std::uint32_t kNoWord = UINT32_MAX;

  explicit KernelCall(std::string_view kernel) noexcept : kernel_(kernel) {}

  KernelCall& in(const void* address) noexcept { return add({.address = address}); }
  KernelCall& out(void* address) noexcept { return add({.address = address}); }
  KernelCall& integer(std::int64_t value) noexcept {
    fits_ = fits_ && value >= INT32_MIN && value <= INT32_MAX;
    return add({.kind = KernelArgument::Kind::kInteger, .integer = static_cast<std::int32_t>(value)});
  }
  KernelCall& bits(std::uint32_t value) noexcept {
    return add({.kind = KernelArgument::Kind::kInteger, .integer = static_cast<std::int32_t>(value)});
  }
  KernelCall& number(double value) noexcept {
    return add({.kind = KernelArgument::Kind::kNumber, .number = static_cast<float>(value)});
  }
  KernelCall& word(std::uint32_t word) noexcept {
    return add({.kind = KernelArgument::Kind::kWord, .integer = static_cast<std::int32_t>(word)});
  }
  KernelCall& guard(std::uint32_t word) noexcept {
    guard_ = word;
    return *this;
  }
  KernelCall& items(std::size_t x, std::size_t y = 1, std::size_t z = 1) noexcept {
    items_ = {x, y, z};
    return *this;
  }
  KernelCall& group(std::size_t x, std::size_t y = 1, std::size_t z = 1) noexcept {
    group_ = {x, y, z};
    return *this;
  }

  std::string_view kernel() const noexcept { return kernel_; }
  std::size_t num_arguments() const noexcept { return count_; }
  const KernelArgument& argument(std::size_t i) const noexcept { return arguments_[i]; }
  const std::array<std::size_t, 3>& items() const noexcept { return items_; }
  const std::array<std::size_t, 3>& group() const noexcept { return group_; }  // First 0: the device chooses.
  std::uint32_t guard() const noexcept { return guard_; }                      // kNoWord: it has none.
  bool fits() const noexcept { return fits_; }  // False: an integer is too large, or there are too many arguments.

 private:
  KernelCall& add(const KernelArgument& argument) noexcept {
    if (count_ == kMostArguments)
      fits_ = false;
    else
      arguments_[count_++] = argument;
    return *this;
  }

  std::string_view kernel_;
  std::array<KernelArgument, kMostArguments> arguments_;
  std::size_t count_ = 0;
  std::array<std::size_t, 3> items_{1, 1, 1}, group_{0, 1, 1};
  std::uint32_t guard_ = kNoWord;
  bool fits_ = true;
};

// What a check refused: the first of its indices that is outside of [0, size).
struct RefusedIndex {
  std::uint32_t check = 0;  // The number of the check; 0: none has refused anything.
  std::int64_t position = 0, index = 0;
};

class PLIMSOLL_API KernelQueue {
 public:
  virtual ~KernelQueue();
  // False, having done nothing, without a kernel of that name or for a call that does not fit. No items: nothing to do.
  virtual bool run(const KernelCall& call) noexcept = 0;
  virtual bool has(std::string_view kernel) const noexcept = 0;
  // (optional) Processors that run items one after the other. A few long items then do as well as many short ones, in
  // fewer launches. 0: it needs many items at once.
  virtual std::size_t num_processors() const noexcept { return 0; }

  // (optional) Words for checks. kNoWord: there are none, or all are taken. Nothing is in it.
  static constexpr std::uint32_t kNoWord = KernelCall::kNoWord;
  virtual std::uint32_t take_word() noexcept { return kNoWord; }
  virtual void give_word(std::uint32_t word) noexcept;  // Also while checks of it have not run yet.
  // Submits a check of i32 or i64 indices. The first check that refuses one stays in the word. `check` is not 0. False,
  // having done nothing, for indices that do not fit.
  virtual bool check_indices(std::uint32_t word, std::uint32_t check, const ConstTensorView& indices,
                             std::int64_t size) noexcept;
  virtual RefusedIndex read_word(std::uint32_t word);  // Waits, and clears it. Throws Error when the device fails.
};

}  // namespace plimsoll::internal
