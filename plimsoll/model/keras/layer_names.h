// Names as Keras makes them: "max_pooling2d" for MaxPooling2D, numbered within a model.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::internal {

std::string snake_case(std::string_view class_name);

}  // namespace plimsoll::internal
