// GraphVariables: what a Variable asks of the graph that is being built.
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/ops/variable.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll {

enum class AssignKind : std::uint8_t { kSet, kAdd, kSubtract };

class PLIMSOLL_API GraphVariables : public Tracer {
 public:
  // A variable that each session has a value of its own for; `handle` is symbolic and has its id.
  struct Declared {
    std::uint32_t index = 0;
    std::string name;
    Tensor handle;
  };
  virtual Declared declare(const Tensor& initial, const VariableOptions& options) = 0;

  // The value, and the value after a change, as nodes.
  virtual Tensor read(std::uint32_t declared) = 0;
  virtual Tensor read(const Variable& eager) = 0;
  virtual Tensor assign(std::uint32_t declared, const Tensor& value, AssignKind kind) = 0;
  virtual Tensor assign(const Variable& eager, const Tensor& value, AssignKind kind) = 0;
};

}  // namespace plimsoll
