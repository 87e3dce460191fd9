#include "plimsoll/model/training/optimizers.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"

namespace plimsoll::optimizers {

Optimizer by_name(std::string_view name) {
  if (name == "sgd") return SGD();
  if (name == "rmsprop") return RMSprop();
  if (name == "adagrad") return Adagrad();
  if (name == "adadelta") return Adadelta();
  if (name == "adam") return Adam();
  if (name == "adamw") return AdamW();
  if (name == "adamax") return Adamax();
  throw InvalidArgument(
      fmt::format("optimizer: \"{}\" is none; use sgd, rmsprop, adagrad, adadelta, adam, adamw or adamax", name));
}

}  // namespace plimsoll::optimizers
