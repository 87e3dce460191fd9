// DeviceName: the type and number of a name such as "CPU:0".
//
//   parse_device_name("/device:cpu:0").text()     // "CPU:0"
//
// Case does not matter. TensorFlow's forms are accepted too: a leading "/", "/device:", "/physical_device:" and
// "/job:localhost/replica:0/task:0/device:".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

struct DeviceName {
  std::string type;  // "CPU", in upper case.
  std::size_t index = 0;

  std::string text() const { return type + ":" + std::to_string(index); }
};

// Throws InvalidArgument for text of any other form, such as "CPU" or "CPU:GPU".
PLIMSOLL_API DeviceName parse_device_name(std::string_view text);

// "cpu" and "CPU" both become "CPU".
PLIMSOLL_API std::string device_type(std::string_view text);

}  // namespace plimsoll::internal
