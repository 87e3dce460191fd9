// TrainingChoice: the optimizer, loss and metrics with which `plimsoll train` trains a model and `plimsoll forecast`
// counts.
//
// By default, the model file's own choice, if it has one. Otherwise Adam, the loss that matches the last layer's
// activation, and the accuracy if that loss is for classes: the same for both commands.
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
// For the model that was read from `path`. `one_hot`: class targets have a column each. Returns the name of the loss,
// "" when the file has its own.
std::string compile(Model& model, const std::string& path, const TrainingChoice& choice, bool one_hot = false);

// --device NAME: models that are made while the result of work_on() lives are there and work there; data stays on the
// host, and batches are moved. Throws NotFound, listing the devices.
void add_device_option(Command& command, std::string& device);
std::unique_ptr<DeviceScope> work_on(const std::string& device);
void require_device(const std::string& device);  // Before the first tensor, so that it is looked for.

// --spill DIR, for commands that may store values that their budget has no room for.
void add_spill_option(Command& command, std::string& directory);
void require_budget_to_spill(const std::string& directory, const std::string& budget);  // Otherwise exits with 2.

}  // namespace plimsoll::internal
