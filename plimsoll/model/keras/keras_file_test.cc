#include "plimsoll/model/keras/keras_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/io/archive.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/recurrent_layers.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

std::string fixture(const std::string& name) { return fmt::format("{}/keras/{}", TEST_DATA, name); }

// As tools/golden_keras3 makes them.
Tensor input(const std::vector<std::int64_t>& sizes, int which, bool whole) {
  const Shape shape(sizes);
  std::vector<float> values;
  for (std::size_t i = 0; i < shape.size(); ++i)
    values.push_back(whole ? static_cast<float>(i * 7 % 5)
                           : static_cast<float>((static_cast<double>((i * 7919 + which * 104729u) % 2003) - 1001) / 1001));
  return from_vector(values, shape);
}

class KerasFile : public testing::Test {
 protected:
  KerasFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "plimsoll_keras_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~KerasFile() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  // An archive with this configuration, and weights of one layer.
  std::string with_config(const std::string& config) const {
    Hdf5Writer writer("test");
    writer.add("layers/dense/vars/0", zeros({3, 2}));
    std::vector<std::pair<std::string, std::string>> texts;
    texts.emplace_back("config.json", config);
    save_archive(path("made.keras"), texts, "model.weights.h5", writer);
    return path("made.keras");
  }
  template <class E>
  std::string message(const std::string& file, const LoadKerasOptions& options = {}) const {
    try {
      load_keras(file, options);
    } catch (const E& error) {
      return error.what();
    }
    return "nothing was thrown";
  }
  std::string folder_;
};

struct Expected {
  std::string name;
  Json json;
  std::vector<Tensor> inputs() const {
    std::vector<Tensor> result;
    for (std::size_t i = 0; i < json["inputs"].size(); ++i)
      result.push_back(input(json["inputs"][i], static_cast<int>(i) + 1, json["whole"].get<bool>()));
    return result;
  }
};

std::vector<Expected> all_expected() {
  const Json all = parse_json(read_file(fixture("expected.json"), 16_MiB));
  std::vector<Expected> result;
  for (const auto& [name, json] : all.items()) result.push_back({name, json});
  return result;
}

void expect_answers(const Model& model, const Expected& expected) {
  const std::vector<Tensor> answers = model.predict_all(expected.inputs());
  ASSERT_EQ(answers.size(), expected.json["answers"].size());
  for (std::size_t k = 0; k < answers.size(); ++k) {
    const std::vector<double> wanted = expected.json["answers"][k];
    ASSERT_EQ(answers[k].size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(answers[k].data<float>()[i], wanted[i], 2e-6) << i;
  }
}

void expect_losses(Model& model, const Expected& expected) {
  const std::vector<double> wanted = expected.json["losses"];
  EXPECT_EQ(model.is_compiled(), !wanted.empty());
  std::vector<Tensor> targets;
  for (const Json& shape : expected.json["shapes"]) {
    std::vector<float> values;
    const Shape sizes(shape.get<std::vector<std::int64_t>>());
    for (std::size_t i = 0; i < sizes.size(); ++i)
      values.push_back(static_cast<float>(0.3 * std::sin(static_cast<double>(i))));
    targets.push_back(from_vector(values, sizes));
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Logs logs = model.train_on_batch({expected.inputs(), targets});
    ASSERT_NEAR(logs["loss"], wanted[i], 2e-5 * std::max(1.0, std::abs(wanted[i]))) << "step " << i;
  }
}

TEST_F(KerasFile, PredictsAndTrainsAsKerasDoes) {
  for (const Expected& expected : all_expected()) {
    SCOPED_TRACE(expected.name);
    Model model = load_keras(fixture(expected.name));
    expect_answers(model, expected);
    expect_losses(model, expected);
  }
}

TEST_F(KerasFile, RestoresWhatItSaved) {
  for (const Expected& expected : all_expected()) {
    SCOPED_TRACE(expected.name);
    save_keras(load_keras(fixture(expected.name)), path("saved.keras"));
    Model again = load_keras(path("saved.keras"));
    expect_answers(again, expected);
    expect_losses(again, expected);
  }
}

}  // namespace
}  // namespace plimsoll
