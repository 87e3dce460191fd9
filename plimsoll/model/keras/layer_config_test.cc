#include "plimsoll/model/keras/layer_config.h"

#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"

namespace plimsoll {
namespace {

TEST(LayerConfig, MakesALayerOfItsSettings) {
  const Layer dense = layers::from_config("Dense", R"({"units": 3, "activation": "relu", "name": "mine"})");
  EXPECT_EQ(dense.name(), "mine");
  EXPECT_EQ(dense(ones({2, 4})).shape(), (Shape{2, 3}));
  const Layer again = layers::from_config("Dense", layers::config_of(dense));
  EXPECT_EQ(layers::config_of(again), layers::config_of(dense));
}

TEST(LayerConfig, RefusesSettingsThatAreNone) {
  EXPECT_THROW(layers::from_config("Dense", "[1]"), InvalidArgument);
  EXPECT_THROW(layers::from_config("Dense", "{"), InvalidArgument);
  EXPECT_THROW(layers::from_config("Dense", R"({"units": "many"})"), InvalidArgument);
  EXPECT_THROW(layers::from_config("Dense", R"({"units": 3, "colour": "red"})"), Unsupported);
  EXPECT_THROW(layers::from_config("Densest", "{}"), Unsupported);
}

class Settings final : public LayerBase {
 public:
  explicit Settings(std::string json) : json_(std::move(json)) {}
  const char* class_name() const override { return "Settings"; }
  Tensor call(const Tensor& x, CallContext&) override { return x; }
  void config(ConfigWriter& out) const override { out.put_all(json_); }

 private:
  std::string json_;
};

TEST(LayerConfig, WritesAndReadsAllSettingsAtOnce) {
  layers::register_layer("Settings", [](const ConfigReader& in) { return make_layer<Settings>(in.all()); });
  const Layer layer = layers::from_config("Settings", R"({"by": 2.5, "list": [1, 2]})");
  EXPECT_EQ(layers::config_of(layer).find(R"("by":2.5)") == std::string::npos, false);
  EXPECT_THROW(layers::config_of(make_layer<Settings>("no object")), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
