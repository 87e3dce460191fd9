#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "plimsoll/base/error.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/option_checks.h"
#include "plimsoll/cli/train/new_command_models.h"
#include "plimsoll/model/layers/lazy_zero_weights.h"

namespace plimsoll::internal {
namespace {

struct NewArguments {
  std::string path;
  PlainModel model;
  bool force = false;
};

void run(const NewArguments& arguments) {
  if (!arguments.force && std::filesystem::exists(arguments.path))
    throw InvalidArgument(
        fmt::format("new: {} is there already; name another file, or overwrite it with --force", arguments.path));
  const LazyZeroWeights none(true);
  Model model = make_plain_model(arguments.model);
  write_topology(model, arguments.path, false);
  std::size_t parameters = 0;
  for (const Variable& variable : model.weights()) parameters += variable.shape().num_elements();
  std::printf("%s: %s with %zu parameters. Train it: plimsoll train %s --data FILE\n", arguments.path.c_str(),
              arguments.model.kind.c_str(), parameters, arguments.path.c_str());
}

}  // namespace

void add_new_command(CommandLine& app) {
  auto arguments = std::make_shared<NewArguments>();
  Command command(app, "new", "Write a model to train (model.json, without weights)");
  command.option("MODEL", arguments->path, "The file to write").required().value("FILE");
  command.option("--inputs", arguments->model.inputs, "Sizes of one example: 4, or 20,3 for 20 steps of 3 numbers")
      .required()
      .delimiter(',')
      .check(at_least(1))
      .value("N[,N...]");
  command.option("--outputs", arguments->model.outputs, "Numbers that it predicts, or classes")
      .required()
      .check(at_least(1))
      .value("N");
  command.option("--kind", arguments->model.kind, "dense: any inputs; lstm: steps; cnn: steps or images")
      .one_of({"dense", "lstm", "cnn"})
      .show_default();
  command.flag("--classes", arguments->model.classes, "The outputs are classes, each with its share");
  command.flag("--force", arguments->force, "Overwrite a file that is there");
  command.notes(
      "Example: a model that tells three kinds of flowers by four numbers, trained and asked\n"
      "  plimsoll new flowers.json --inputs 4 --outputs 3 --classes\n"
      "  plimsoll train flowers.json --data flowers.csv --epochs 50\n"
      "  plimsoll predict flowers-trained/model.json --input new.csv");
  command.run([arguments] { run(*arguments); });
}

}  // namespace plimsoll::internal
