// Models for those who do not want to write one: what `plimsoll new` writes and `plimsoll train` makes of a table.
//
//   Model model = make_plain_model({.kind = "dense", .inputs = {4}, .outputs = 3, .classes = true});
//   write_topology(model, "model.json", false);      // Without weights: it begins with random ones.
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
  bool classes = false;  // The outputs are the shares of classes.
};
// Throws InvalidArgument for inputs that the kind does not take.
Model make_plain_model(const PlainModel& what);

// The model's layers, without weights; with what compile() was told, when it is to be trained on.
void write_topology(const Model& model, const std::string& path, bool with_training);

}  // namespace plimsoll::internal
