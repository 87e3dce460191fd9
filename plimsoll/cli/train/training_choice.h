// TrainingChoice: with which optimizer, loss and metrics `plimsoll train` trains a model and `plimsoll forecast`
// counts.
//
// What is left out is the model file's own choice, when it has one. Else it is Adam, the loss that goes with the last
// layer's activation, and the accuracy where that loss is of classes: the same for both commands.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plimsoll/cli/options.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/model/model.h"

namespace plimsoll::internal {

struct TrainingChoice {
  std::string optimizer, loss;
  std::vector<std::string> metrics;
  double learning_rate = 0;  // 0: the optimizer's.
};

void add_training_choice(Command& command, TrainingChoice& choice);
// Of the model that was read from `path`. `one_hot`: targets of classes have a column for each.
// The name of the loss, "" when the file has one of its own.
std::string compile(Model& model, const std::string& path, const TrainingChoice& choice, bool one_hot = false);

// --device NAME: where the command works while the result lives. Throws NotFound, listing the devices.
void add_device_option(Command& command, std::string& device);
std::unique_ptr<DeviceScope> work_on(const std::string& device);

// --spill DIR, for what may store values that its budget has no room for.
void add_spill_option(Command& command, std::string& directory);
void require_budget_to_spill(const std::string& directory, const std::string& budget);  // Else exits with 2.

}  // namespace plimsoll::internal
