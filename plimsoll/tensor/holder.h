// Holder: something that keeps buffers alive: a variable, a tape, a graph, a session, a cache or a dataset.
//
//   class Tape : public Holder {
//     std::string describe() const override { return "tape"; }
//     void visit_held(FunctionRef<void(const Storage&, const char*)> f) const override { ... f(storage, "input of
//     multiply"); }
//   };
//
// A holder enrols at the end of its constructor and retires at the start of its destructor; who_holds() asks them all.
// Any thread may inspect what they hold while all others are stopped at their gates (thread_memory.h), so a holder
// changes it only inside its thread's gate, and visit_held() neither allocates tensors nor takes a lock. Cost: a lock
// when one is made or destroyed.
#pragma once

#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/base/function_ref.h"
#include "plimsoll/tensor/storage.h"

namespace plimsoll {

class PLIMSOLL_API Holder {
 public:
  using Visit = FunctionRef<void(const Storage& storage, const char* detail)>;

  Holder() = default;
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  virtual std::string describe() const = 0;  // Its kind, and its name in quotes if it has one: variable "kernel".
  virtual void visit_held(Visit f) const = 0;

  // Calls f(holder) for all of them while every other thread is stopped; f must not make or drop tensors or holders.
  static void for_each(FunctionRef<void(const Holder&)> f);

 protected:
  virtual ~Holder();
  void enrol();
  void retire() noexcept;

 private:
  Holder* previous_ = nullptr;
  Holder* next_ = nullptr;
};

}  // namespace plimsoll
