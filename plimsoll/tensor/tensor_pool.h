// TensorPool: tensors of one shape that are taken once and lent out, so that steady work allocates nothing.
//
//   TensorPool pool({.shape = {1, 224, 224, 3}, .dtype = f32, .capacity = 4});
//   {
//     TensorPool::Lease lease = pool.acquire();          // waits until one is free
//     read_frame(lease.data<float>());                   // a span to write to; not cleared
//     Tensor y = predict(lease.tensor());
//   }                                                    // goes back
//
// All memory is taken when the pool is made, and charged to the BudgetScope in force there; it goes back with the pool
// and its last lease. Leases are granted first come, first served. A lease may outlive the pool.
// When a lease ends its tensor is disposed, through all handles, so that nobody reads what the next one writes by
// mistake; tidy scopes leave it alone before. A buffer that something else still refers to then (a view such as
// lease.tensor().reshape(..), a data() span, a tape, a variable made of it) goes back when that has gone: report()
// counts it as held.
// memory() counts a buffer for each of the capacity, and a tensor for each lease. Memory reports call them "pool".
// Thread safety: any thread, for pool and leases; what is in a buffer is the users' to order. Cost: acquiring and
// ending take a lock and some 100 ns, and no memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/base/dtype.h"
#include "plimsoll/base/shape.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct TensorPoolOptions {
  Shape shape = {};  // Left out: scalars.
  DType dtype = f32;
  std::size_t capacity = 0;  // How many tensors; at least 1.
  std::string device = {};   // Left out: that of the DeviceScope.
};

class PLIMSOLL_API TensorPool {
 public:
  class Lease;

  // Throws InvalidArgument for a capacity of 0, unknown sizes and text that is no device, NotFound for a device that
  // does not exist, OutOfMemory when it does not all fit: then nothing was taken.
  explicit TensorPool(const TensorPoolOptions& options);
  ~TensorPool();
  TensorPool(const TensorPool&) = delete;
  TensorPool& operator=(const TensorPool&) = delete;

  // Waits while all are lent. A thread that holds all of them itself waits for ever.
  Lease acquire();
  std::optional<Lease> acquire_for(std::chrono::nanoseconds timeout);  // Nothing when none became free in time.
  std::optional<Lease> try_acquire();                                  // Nothing when none is free, or others wait.

  std::size_t capacity() const noexcept;
  std::size_t used() const;    // How many are lent or held.
  std::size_t peak() const;    // Largest used() so far.
  std::string report() const;  // One line: what it holds, how many are used, waiting threads.

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// One tensor of a pool, until it ends.
class PLIMSOLL_API TensorPool::Lease {
 public:
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();

  // All throw FailedPrecondition after reset() or when moved from.
  Tensor tensor() const;
  template <Element T>
  std::span<T> data() const {  // Throws InvalidArgument when T is not the element type.
    return writable_view().template span<T>();
  }

  void reset() noexcept;  // Ends it now.

 private:
  friend class TensorPool;
  Lease(std::shared_ptr<State> state, std::size_t buffer);
  TensorView writable_view() const;

  std::shared_ptr<State> state_;
  std::size_t buffer_ = 0;
  Tensor tensor_;
};

}  // namespace plimsoll
