// TensorPool: tensors of one shape that are allocated once and lent out, so that steady work allocates nothing.
//
//   TensorPool pool({.shape = {1, 224, 224, 3}, .dtype = f32, .capacity = 4});
//   {
//     TensorPool::Lease lease = pool.acquire();          // waits until one is free
//     read_frame(lease.data<float>());                   // a span to write to; not cleared
//     Tensor y = predict(lease.tensor());
//   }                                                    // the tensor returns to the pool
//
// All memory is allocated when the pool is made, and charged to the BudgetScope in force there; it is freed with the
// pool and its last lease. Leases are granted first come, first served. A lease may outlive the pool.
// When a lease ends, its tensor is disposed, through all handles, so that nobody reads by mistake what the next one
// writes; until then tidy scopes leave it alone. A buffer that something else still refers to (a view such as
// lease.tensor().reshape(..), a data() span, a tape, a variable made of it) returns to the pool when that is gone:
// report() counts it as held.
// memory() counts one buffer per unit of capacity and one tensor per lease. Memory reports call them "pool".
// Thread safety: any thread, for pool and leases; users must order access to a buffer's contents. Cost: acquiring and
// ending a lease take a lock and about 100 ns, and no memory.
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
  Shape shape = {};  // Default: scalars.
  DType dtype = f32;
  std::size_t capacity = 0;  // How many tensors; at least 1.
  std::string device = {};   // Default: that of the DeviceScope.
};

class PLIMSOLL_API TensorPool {
 public:
  class Lease;

  // Throws InvalidArgument for a capacity of 0, unknown sizes and text that is not a device, NotFound for a device that
  // does not exist, OutOfMemory when it does not all fit: then nothing was allocated.
  explicit TensorPool(const TensorPoolOptions& options);
  ~TensorPool();
  TensorPool(const TensorPool&) = delete;
  TensorPool& operator=(const TensorPool&) = delete;

  // Waits while all are lent. A thread that holds all of them itself waits forever.
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

// One tensor of a pool, until the lease ends.
class PLIMSOLL_API TensorPool::Lease {
 public:
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();

  // All throw FailedPrecondition after reset() or after a move.
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
