#include "plimsoll/device/device_name.h"

#include <gtest/gtest.h>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

TEST(DeviceName, UnderstandsOurFormAndTensorFlows) {
  for (const char* text : {"CPU:0", "cpu:0", "/CPU:0", "/device:CPU:0", "/device:cpu:0", "/physical_device:CPU:0",
                           "/job:localhost/replica:0/task:0/device:CPU:0"})
    EXPECT_EQ(parse_device_name(text).text(), "CPU:0") << text;
  EXPECT_EQ(parse_device_name("XLA_GPU:12").type, "XLA_GPU");
  EXPECT_EQ(parse_device_name("XLA_GPU:12").index, 12u);
}

TEST(DeviceName, RefusesWhatIsNotAName) {
  for (const char* text : {"", "CPU", "CPU:", ":0", "CPU:GPU", "CPU:0:1", "CPU:-1", "CPU: 0", "CPU:0 ", "C PU:0",
                           "CPU:99999999999", "/job:worker/replica:0/task:1/device:CPU:0", "//CPU:0"})
    EXPECT_THROW(parse_device_name(text), InvalidArgument) << text;
}

}  // namespace
}  // namespace plimsoll
