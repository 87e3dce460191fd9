// What layers with a kernel and a bias share: making the two, and their part of a layer's config.
//
// `Options` has kernel_initializer, kernel_regularizer, kernel_constraint, the same for the bias, and a seed.
#pragma once

#include <string>

#include "plimsoll/model/keras/config.h"
#include "plimsoll/model/layers/layer.h"

namespace plimsoll::internal {

template <class Options>
WeightOptions kernel_weight(const Options& options) {
  return {.initializer = options.kernel_initializer,
          .regularizer = options.kernel_regularizer,
          .constraint = options.kernel_constraint,
          .seed = options.seed};
}

template <class Options>
WeightOptions bias_weight(const Options& options) {
  return {.initializer = options.bias_initializer,
          .regularizer = options.bias_regularizer,
          .constraint = options.bias_constraint,
          .seed = options.seed};
}

// Some kernels have another name in files.
template <class Options>
void put_kernel(ConfigWriter& out, const Options& options, const std::string& name = "kernel") {
  out.put(name + "_initializer", options.kernel_initializer);
  out.put(name + "_regularizer", options.kernel_regularizer);
  out.put(name + "_constraint", options.kernel_constraint);
}

template <class Options>
void put_bias(ConfigWriter& out, const Options& options) {
  out.put("use_bias", options.use_bias);
  out.put("bias_initializer", options.bias_initializer);
  out.put("bias_regularizer", options.bias_regularizer);
  out.put("bias_constraint", options.bias_constraint);
}

template <class Options>
void read_kernel_and_bias(const ConfigReader& in, Options& options, const std::string& name = "kernel") {
  options.kernel_initializer = in.initializer(name + "_initializer").or_else("glorot_uniform");
  options.kernel_regularizer = in.regularizer(name + "_regularizer");
  options.kernel_constraint = in.constraint(name + "_constraint");
  options.use_bias = in.flag("use_bias", true);
  options.bias_initializer = in.initializer("bias_initializer").or_else("zeros");
  options.bias_regularizer = in.regularizer("bias_regularizer");
  options.bias_constraint = in.constraint("bias_constraint");
}

}  // namespace plimsoll::internal
