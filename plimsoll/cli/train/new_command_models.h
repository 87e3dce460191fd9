// Ready-made models: what `plimsoll new` writes, and `plimsoll train` makes for a table.
//
//   Model model = make_plain_model({.kind = "dense", .inputs = {4}, .outputs = 3, .classes = true});
//   write_topology(model, "model.json", false);      // Without weights: training starts with random ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/model/model.h"

namespace plimsoll::internal {

struct PlainModel {
  std::string kind = "dense";        // Or "lstm", for [steps, features], or "cnn", for those and images.
  std::vector<std::int64_t> inputs;  // Sizes of an example.
  std::int64_t outputs = 1;
  bool classes = false;  // The outputs are class probabilities.
};
// Throws InvalidArgument for inputs that the kind does not accept.
Model make_plain_model(const PlainModel& what);

// The model's layers, without weights; with the options of compile(), when training will continue.
void write_topology(const Model& model, const std::string& path, bool with_training);

}  // namespace plimsoll::internal
