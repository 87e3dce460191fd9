// GraphVariables: what a Variable needs from the graph under construction.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/variable.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {

enum class AssignKind : std::uint8_t { kSet, kAdd, kSubtract };

// State besides variables that a successful run changes, such as an optimizer's count of steps.
class PLIMSOLL_API RunEffect {
 public:
  virtual ~RunEffect();
  virtual void begin() = 0;  // Locks until end(); acquires what commit() needs. If it throws, no end() follows.
  virtual void commit(std::size_t times) noexcept = 0;
  virtual void end() noexcept = 0;
};

class PLIMSOLL_API GraphVariables : public Tracer {
 public:
  // A variable with its own value in each session; `handle` is symbolic and has its id.
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

  // `op` changes these in place: operand 0 and those after operand 1 are the values, the outputs their new values.
  virtual void update(const Op& op, std::span<const Tensor> operands, std::span<const Variable> changed) = 0;
  // Moves the operands to the device of the next node: `placed` has them all when one had to move, else it stays empty.
  virtual void place(const Op& op, std::span<const Tensor* const> inputs, std::vector<Tensor>& placed) = 0;
  // A copy on another device, as a node.
  virtual Tensor move(const Op& copy, const Tensor& value, Device& to) = 0;
  // How often the graph had this effect before. Throws Unsupported where effects are not possible.
  virtual std::size_t add_effect(const RunEffect& effect) = 0;
  // A number that represents the seed a run takes from the stream.
  virtual std::uint64_t defer_seed(const std::shared_ptr<SeedStream>& stream, std::uint64_t base) = 0;
};

}  // namespace plimsoll::internal
