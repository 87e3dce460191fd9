// ConfigWriter, ConfigReader, register_layer: store a layer's settings in a model's file and read them; for your own
// layers, too.
//
//   class Scale : public LayerBase {
//     ...
//     void config(ConfigWriter& out) const override { out.put("by", by_); }           // {"by": 2.5}
//   };
//   layers::register_layer("Scale", [](const ConfigReader& in) { return make_layer<Scale>(in.number("by", 1)); });
//   save_layers_model(model, "dir"); load_layers_model("dir/model.json");
//
// A setting that is absent or null has its default. The reader throws Corruption, with the path of the value inside the
// document, for what is missing or of another kind, and trusts no number. A setting in a file that nothing reads is
// refused (Unsupported), so that none is ignored by mistake. Name, trainable, dtype and the input's shape are written
// and read automatically.
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
  void put_all(const std::string& json);  // The settings of a JSON object. Throws InvalidArgument for other text.
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

  bool has(std::string_view key) const;      // Whether it exists and is not null.
  bool is_null(std::string_view key) const;  // Whether it exists and is null.
  std::int64_t integer(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t otherwise) const;
  double number(std::string_view key, double otherwise) const;
  bool flag(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  // Integers; a single integer stands for a list of `count` of them.
  std::vector<std::int64_t> integers(std::string_view key, std::size_t count, std::int64_t otherwise) const;
  std::vector<std::int64_t> flat_integers(std::string_view key, std::int64_t otherwise) const;  // From nested lists.
  Shape shape(std::string_view key) const;              // Null inside means an unknown size.
  Initializer initializer(std::string_view key) const;  // Unset when absent.
  Regularizer regularizer(std::string_view key) const;
  Constraint constraint(std::string_view key) const;
  std::optional<std::uint64_t> seed(std::string_view key = "seed") const;
  std::shared_ptr<LayerBase> layer(std::string_view key) const;
  std::string all() const;  // All settings, as a JSON object; they count as read.

  const std::string& path() const noexcept;  // Of this part of the document, for messages.
  [[noreturn]] void fail(std::string_view key, std::string_view what) const;    // Corruption.
  [[noreturn]] void refuse(std::string_view key, std::string_view what) const;  // Unsupported, with the value.
  const Document& document() const noexcept { return *in_; }

 private:
  std::unique_ptr<Document> in_;
};

using LayerFactory = std::function<Layer(const ConfigReader& in)>;

namespace layers {

// From now on files may contain layers of this class. The name is that of class_name(). A second factory for a name
// replaces the first; throws InvalidArgument for the name of a built-in class. Any thread.
PLIMSOLL_API void register_layer(const std::string& class_name, LayerFactory factory);

// Makes a layer of that class from these settings, a JSON object as Keras writes it; and writes one. Bindings to other
// languages make layers with these.
//
//   Layer dense = layers::from_config("Dense", R"({"units": 16, "activation": "relu"})");
//
// Throws InvalidArgument for text that is not such an object and for wrong settings, Unsupported for what is not
// supported.
PLIMSOLL_API Layer from_config(const std::string& class_name, const std::string& json);
PLIMSOLL_API std::string config_of(const Layer& layer);  // Throws Unsupported for a layer without a config().

}  // namespace layers
}  // namespace plimsoll
