// What layers, training and models share.
#pragma once

#include "common.h"
#include "scopes.h"

namespace binding {

// (x, y), (x, y, weights) or x; several inputs or targets as a list.
pl::Example to_example(nb::handle value);
nb::object wrap_example(const pl::Example& example);
pl::Dataset to_dataset(nb::handle object);  // Of a Dataset; unset for others.
nb::object wrap_layer(const pl::Layer& layer);
// A model whose call() is written in Python: a chain of one layer, whose object is the model.
pl::Model python_model(nb::handle self, const std::string& name);
std::optional<nb::list> python_model_layers(nb::handle model);  // None for other models.
extern PyType_Slot model_slots[];                               // What the collector of cycles asks.
nb::dict wrap_logs(const pl::Logs& logs);
std::string to_json(nb::handle object);
nb::object from_json(const std::string& text);

pl::Loss to_loss(nb::handle object);
pl::Metric to_metric(nb::handle object);
pl::Callback to_callback(nb::handle object, nb::handle model);
pl::Callback signal_callback();  // Lets Ctrl-C end a fit.

}  // namespace binding
