// Settings of imported layers that nothing reads: those that change no result are ignored, all others refused.
#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/base/json.h"
#include "plimsoll/model/keras/config.h"

namespace plimsoll::internal {
namespace {

// Words: classes, and their settings. "key": with any value; "key=value": with this value.
struct Harmless {
  std::string_view classes, settings;
};

constexpr Harmless kHarmless[] = {
    {"InputLayer", "sparse=false ragged=false optional=false"},
    {"Embedding", "input_length sparse=false"},  // The length is also in the input's shape.
    {"DepthwiseConv2D Conv2DTranspose", "groups=1"},
    // A kernel that it does not have: Keras 2 writes the settings of the base class.
    {"SeparableConv2D", "groups=1 kernel_initializer kernel_regularizer kernel_constraint"},
    {"BatchNormalization", "fused renorm=false renorm_momentum synchronized=false"},
    {"LayerNormalization", "rms_scaling=false"},
    // How it computes, not what.
    {"SimpleRNN LSTM GRU", "implementation unroll use_cudnn time_major=false"},
    // The shapes it was built for, which the model repeats.
    {"MultiHeadAttention",
     "query_shape key_shape value_shape dropout=0.0 attention_axes=[1] softmax_robust_masking=false use_gate=false "
     "flash_attention"},
};

// Calls f with each word of `text` until it returns true; returns whether it did.
bool any_word(std::string_view text, FunctionRef<bool(std::string_view word)> f) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (f(text.substr(0, end))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

bool is_harmless(std::string_view class_name, std::string_view key, const nlohmann::json& value) {
  if (value.is_null()) return true;  // Not set.
  const auto allows = [&](std::string_view setting) {
    const std::size_t equals = setting.find('=');
    if (setting.substr(0, equals) != key) return false;
    return equals == std::string_view::npos || parse_json(setting.substr(equals + 1)) == value;
  };
  for (const Harmless& each : kHarmless)
    if (any_word(each.classes, [&](std::string_view word) { return word == class_name; }) &&
        any_word(each.settings, allows))
      return true;
  return false;
}

}  // namespace

void refuse_unread(const ConfigReader& in, std::string_view class_name) {
  const ConfigReader::Document& document = in.document();
  const auto name = document.json.find("name");
  const std::string who = name != document.json.end() && name->is_string()
                              ? fmt::format("{} \"{}\"", class_name, name->get_ref<const std::string&>())
                              : std::string(class_name);
  for (const auto& [key, value] : document.json.items())
    if (document.read.count(key) == 0 && !is_harmless(class_name, key, value))
      in.refuse(key, fmt::format("is a setting of {} that is not offered", who));
}

}  // namespace plimsoll::internal
