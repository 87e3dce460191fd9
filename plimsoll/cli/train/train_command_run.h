// train: runs `plimsoll train`, from its arguments to its results.
//
// Everything it will write is tried before the first step. From the first step on the weights are saved whatever
// happens: at the end, after SIGINT or SIGTERM (the second one ends the program), and after an error, which is then
// rethrown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plimsoll/cli/train/train_command_table.h"
#include "plimsoll/cli/train/training_choice.h"
#include "plimsoll/model/training/logs.h"

namespace plimsoll::internal {

struct TrainArguments {
  std::string model, data, validation, budget, device, spill, checkpoint, logdir, report, out, weights, resume;
  TrainingChoice choice;
  DataOptions columns;
  int epochs = 10;
  std::size_t batch = 32;
  std::optional<std::uint64_t> seed;
  double max_slowdown = 8;
  bool no_shuffle = false, json = false;
  bool distributed = false, shard_optimizer = false, shard_parameters = false;
  std::size_t slices = 0;
  double timeout = 30;  // Seconds.
};

struct TrainOutcome {
  History history;
  std::string checkpoint, out, trace, report;
  std::size_t budget = 0, dropped_rows = 0, data_bytes = 0, shuffled_examples = 0;
  bool streams = false;
  int first_epoch = 1;
  int signal = 0;  // The signal that ended it.
  int rank = 0, ranks = 1;
  std::size_t slices = 0;
  bool shards_parameters = false;                 // As asked, or for the budget.
  std::uint64_t sent_bytes = 0, early_bytes = 0;  // By this rank.
  double waited_seconds = 0;                      // For others.
};

TrainOutcome train(const TrainArguments& arguments);

}  // namespace plimsoll::internal
