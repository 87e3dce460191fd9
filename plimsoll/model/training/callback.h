// Callback: called while a fit runs, and able to end it. The ready-made ones are in callbacks.h.
//
//   class Print : public CallbackBase {
//     void on_epoch_end(Model&, int epoch, const Logs& logs) override { std::cout << epoch << ": " << logs["loss"]; }
//   };
//   model.fit(train, {.callbacks = {make_callback<Print>()}});
//
// Epochs and batches count from 0. Called on the thread of fit; an exception ends the fit and reaches the caller, after
// on_train_end of all callbacks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/model/training/logs.h"

namespace plimsoll {

class Model;

class PLIMSOLL_API CallbackBase {
 public:
  virtual ~CallbackBase();
  // Called first, with the names that the logs of an epoch will have. May refuse them.
  virtual void check_names(const std::vector<std::string>& /*names*/) {}
  virtual void on_train_begin(Model&) {}
  virtual void on_epoch_begin(Model&, int /*epoch*/) {}
  virtual void on_batch_end(Model&, std::size_t /*batch*/, const Logs&) {}
  virtual void on_epoch_end(Model&, int /*epoch*/, const Logs&) {}  // With val_* when there is validation.
  virtual void on_train_end(Model&) {}
  // Whether only the first process of a job should call it, as for one that writes files. Others see the same logs.
  virtual bool is_for_first_rank() const { return false; }
};

class PLIMSOLL_API Callback {
 public:
  explicit Callback(std::shared_ptr<CallbackBase> base);  // Throws InvalidArgument for none.
  CallbackBase& base() const noexcept { return *base_; }

 private:
  std::shared_ptr<CallbackBase> base_;
};

template <class C, class... Arguments>
Callback make_callback(Arguments&&... arguments) {
  return Callback(std::make_shared<C>(std::forward<Arguments>(arguments)...));
}

}  // namespace plimsoll
