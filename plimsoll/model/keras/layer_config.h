// ConfigWriter, ConfigReader, register_layer: a layer's settings to and from a model's file; your own layers, too.
//
//   class Scale : public LayerBase {
//     ...
//     void config(ConfigWriter& out) const override { out.put("by", by_); }           // {"by": 2.5}
//   };
//   layers::register_layer("Scale", [](const ConfigReader& in) { return make_layer<Scale>(in.number("by", 1)); });
//   save_layers_model(model, "dir"); load_layers_model("dir/model.json");
//
// A setting that is absent or null has its default. The reader throws Corruption, with the path of the value inside of
// the document, for what is missing or of another kind, and trusts no number. A setting that a file has and no one
// asks for is refused (Unsupported), so that none is ignored by mistake. Name, trainable, dtype and the input's shape
// are written and read for you.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/shape.h"
#include "plimsoll/model/layers/initializer.h"
#include "plimsoll/model/layers/layer.h"
#include "plimsoll/model/layers/regularizer.h"

namespace plimsoll {

class PLIMSOLL_API ConfigWriter {
 public:
  struct Document;  // internal/config.h
  explicit ConfigWriter(Document& out) : out_(out) {}

  void put(std::string_view key, bool value);
  void put(std::string_view key, int value) { put(key, std::int64_t{value}); }
  void put(std::string_view key, std::int64_t value);
  void put(std::string_view key, double value);
  void put(std::string_view key, const std::string& value);
  void put(std::string_view key, const char* value) { put(key, std::string(value)); }
  void put(std::string_view key, const std::vector<std::int64_t>& values);
  void put(std::string_view key, const std::vector<std::vector<std::int64_t>>& values);
  void put(std::string_view key, const Initializer& value);
  void put(std::string_view key, const Regularizer& value);
  void put(std::string_view key, const Constraint& value);
  void put(std::string_view key, const std::optional<std::uint64_t>& seed);  // Null when it is not set.
  void put_null(std::string_view key);
  void put_all(const std::string& json);  // The settings of an object of JSON. Throws InvalidArgument for other text.
  void put_layer(std::string_view key, const LayerBase& layer, const std::string& name);  // Under its own name.

 private:
  Document& out_;
};

class PLIMSOLL_API ConfigReader {
 public:
  struct Document;  // internal/config.h
  explicit ConfigReader(std::unique_ptr<Document> in);
  ConfigReader(ConfigReader&&) noexcept;
  ~ConfigReader();

  bool has(std::string_view key) const;      // And it is not null.
  bool is_null(std::string_view key) const;  // There, and null.
  std::int64_t integer(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t otherwise) const;
  double number(std::string_view key, double otherwise) const;
  bool flag(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  // Of integers; one integer is taken for a list of `count` of them.
  std::vector<std::int64_t> integers(std::string_view key, std::size_t count, std::int64_t otherwise) const;
  std::vector<std::int64_t> flat_integers(std::string_view key, std::int64_t otherwise) const;  // Of lists in lists.
  Shape shape(std::string_view key) const;              // Null inside is an unknown size.
  Initializer initializer(std::string_view key) const;  // Unset when absent.
  Regularizer regularizer(std::string_view key) const;
  Constraint constraint(std::string_view key) const;
  std::optional<std::uint64_t> seed(std::string_view key = "seed") const;
  std::shared_ptr<LayerBase> layer(std::string_view key) const;
  std::string all() const;  // Every setting, as an object of JSON; they count as asked for.

  const std::string& path() const noexcept;  // Of this part of the document, for messages.
  [[noreturn]] void fail(std::string_view key, std::string_view what) const;    // Corruption.
  [[noreturn]] void refuse(std::string_view key, std::string_view what) const;  // Unsupported, with the value.
  const Document& document() const noexcept { return *in_; }

 private:
  std::unique_ptr<Document> in_;
};

using LayerFactory = std::function<Layer(const ConfigReader& in)>;

namespace layers {

// From now on files may have layers of this class. The name is what class_name() gives. A second factory of one name
// replaces the first; throws InvalidArgument for the name of a class of our own. Any thread.
PLIMSOLL_API void register_layer(const std::string& class_name, LayerFactory factory);

// The layer of that class with these settings, an object of JSON as Keras writes it, and what it would write: how
// bindings to other languages make layers.
//
//   Layer dense = layers::from_config("Dense", R"({"units": 16, "activation": "relu"})");
//
// Throws InvalidArgument for text that is no such object and settings that are wrong, Unsupported for what is not
// offered.
PLIMSOLL_API Layer from_config(const std::string& class_name, const std::string& json);
PLIMSOLL_API std::string config_of(const Layer& layer);  // Throws Unsupported for a layer without a config().

}  // namespace layers
}  // namespace plimsoll
