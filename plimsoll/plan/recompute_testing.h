// Programs for tests of recompute(): random ones, and training steps of layers in a row.
#pragma once

#include <random>
#include <vector>

#include "plimsoll/plan/recompute.h"

namespace plimsoll {

struct RandomProgramOptions {
  int steps = 20;
  int most_writes = 2;
  std::size_t most_bytes = 20;
  bool with_state = true;  // In place, pinned, kept, held, scratch, steps that may not repeat.
  bool may_spill = false;
  bool may_take = false;  // Results may take the bytes of operands.
};

// Always holds together; the same for the same seed on every machine.
inline StepProgram random_program(unsigned seed, const RandomProgramOptions& options = {}) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  StepProgram program;
  std::vector<int> there;
  const auto add = [&](StepProgram::Value value) {
    value.may_spill = options.may_spill && below(4) != 0;
    program.values.push_back(value);
    there.push_back(static_cast<int>(program.values.size()) - 1);
    return there.back();
  };
  for (int k = 0; k < 2; ++k) add({.bytes = below(options.most_bytes), .is_given = true});
  for (int step = 0; step < options.steps; ++step) {
    StepProgram::Step s{.cost = below(10), .is_gradient = step > options.steps / 2};
    for (std::size_t k = 0; k <= below(3); ++k) {
      const std::size_t near = below(3) != 0 ? std::min<std::size_t>(there.size(), 4) : there.size();
      s.reads.push_back(there[there.size() - 1 - below(near)]);
    }
    if (options.with_state && below(8) == 0) s.may_repeat = false;
    if (options.with_state) s.scratch_bytes = below(6);
    const bool in_place = options.with_state && below(5) == 0;
    for (std::size_t k = 0; k <= below(options.most_writes); ++k) {
      const int taken = in_place && k == 0 ? s.reads[0] : StepProgram::kNone;
      StepProgram::Value value{.bytes = taken >= 0 ? program.values[taken].bytes : below(options.most_bytes)};
      if (options.with_state && below(10) == 0) value.is_pinned = true;
      if (options.with_state && below(6) == 0) value.last_held = step + static_cast<int>(below(4));
      if (taken >= 0) std::erase(there, taken);
      s.writes.push_back(add(value));
      s.takes_over.push_back(taken);
    }
    for (const int value : s.reads)
      if (options.may_take && s.takes_over[0] == StepProgram::kNone && (seed + static_cast<unsigned>(value)) % 3 != 0 &&
          program.values[value].bytes == program.values[s.writes[0]].bytes)
        s.may_take.push_back(value);
    program.steps.push_back(std::move(s));
  }
  for (const int value : there)
    if (below(6) == 0 || value == there.back()) program.values[value].is_kept = true;
  return program;
}

// Forward through `layers`, backward, and an update of each parameter as soon as its gradient is there.
inline StepProgram training_step(int layers, std::size_t activation_bytes = 1000, std::size_t parameter_bytes = 100) {
  StepProgram program;
  const auto add = [&](StepProgram::Value value) {
    program.values.push_back(value);
    return static_cast<int>(program.values.size()) - 1;
  };
  std::vector<int> activations = {add({.bytes = activation_bytes, .is_given = true})}, parameters;
  for (int k = 0; k < layers; ++k) parameters.push_back(add({.bytes = parameter_bytes, .is_given = true}));
  for (int k = 0; k < layers; ++k) {
    activations.push_back(add({.bytes = activation_bytes}));
    program.steps.push_back(
        {.reads = {activations[k], parameters[k]}, .writes = {activations[k + 1]}, .cost = 100 + 10 * (k % 3u)});
  }
  int gradient = add({.bytes = activation_bytes});
  program.steps.push_back({.reads = {activations.back()}, .writes = {gradient}, .cost = 1, .is_gradient = true});
  for (int k = layers - 1; k >= 0; --k) {
    const int of_parameter = add({.bytes = parameter_bytes}), of_input = add({.bytes = activation_bytes});
    const int updated = add({.bytes = parameter_bytes, .is_kept = true});
    program.steps.push_back(
        {.reads = {gradient, activations[k]}, .writes = {of_parameter}, .cost = 100, .is_gradient = true});
    program.steps.push_back(
        {.reads = {gradient, parameters[k]}, .writes = {of_input}, .cost = 100, .is_gradient = true});
    program.steps.push_back({.reads = {parameters[k], of_parameter},
                             .writes = {updated},
                             .takes_over = {parameters[k]},
                             .cost = 5,
                             .may_repeat = false});
    gradient = of_input;
  }
  return program;
}

}  // namespace plimsoll
