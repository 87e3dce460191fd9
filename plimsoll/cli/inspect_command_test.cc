#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "plimsoll/base/json.h"
#include "plimsoll/cli/cli_testing.h"
#include "plimsoll/io/checkpoint.h"
#include "plimsoll/io/event_writer.h"
#include "plimsoll/io/npz.h"
#include "plimsoll/io/safetensors.h"
#include "plimsoll/tensor/tensor_testing.h"

namespace plimsoll {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
namespace fs = std::filesystem;

class InspectCommand : public testing::Test {
 protected:
  InspectCommand() {
    std::string pattern = (fs::temp_directory_path() / "inspect_XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }
  ~InspectCommand() override { fs::remove_all(directory_); }

  static std::string run(const fs::path& path, bool json, int expected_code = 0) {
    std::vector<std::string> arguments = {"inspect", path.string()};
    if (json) arguments.push_back("--json");
    const CliResult result = run_cli(arguments);
    EXPECT_EQ(result.code, expected_code);
    errors_ = result.errors;
    return result.out;
  }

  inline static std::string errors_;
  fs::path directory_;
};

TEST_F(InspectCommand, ShowsCheckpointsByPrefixFileAndFolder) {
  CheckpointKeeper keeper;
  const fs::path prefix = keeper.save(directory_ / "model.ckpt", 7,
                                      std::vector<NamedTensor>{{"dense/kernel", tensor_of<float>({2, 1}, {1, 2})}});
  for (const fs::path& path : {prefix, bundle_index_path(prefix), bundle_data_path(prefix, 0, 1), directory_}) {
    const auto json = parse_json(run(path, true));
    EXPECT_EQ(json["kind"], "checkpoint");
    EXPECT_EQ(json["bytes"], 8);
    EXPECT_EQ(
        json["tensors"][0],
        (nlohmann::json{
            {"name", "dense/kernel"}, {"dtype", "float32"}, {"shape", {2, 1}}, {"bytes", 8}, {"checksum", "ok"}}));
  }
  EXPECT_THAT(run(prefix, false), ContainsRegex("dense/kernel +float32 +\\[2, 1\\] +8 +ok"));
  std::ofstream(bundle_data_path(prefix, 0, 1)) << "damaged!";
  const auto json = parse_json(run(prefix, true, 1));
  EXPECT_EQ(json["problems"], 1);
  EXPECT_THAT(json["tensors"][0]["checksum"].get<std::string>(), HasSubstr("instead of"));
}

TEST_F(InspectCommand, ShowsTheOtherFormats) {
  const Tensor x = tensor_of<std::int64_t>({3}, {1, 2, 3});
  save_safetensors(directory_ / "a.safetensors", {{"x", x}}, {{"format", "pt"}});
  save_npz(directory_ / "a.npz", {{"x", x}});
  save_npy(directory_ / "a.npy", x);
  for (const char* name : {"a.safetensors", "a.npz", "a.npy"}) {
    const auto json = parse_json(run(directory_ / name, true));
    EXPECT_EQ("a." + json["kind"].get<std::string>(), name);
    EXPECT_EQ(json["tensors"][0]["bytes"], 24);
    EXPECT_EQ(json["tensors"][0]["shape"], nlohmann::json({3}));
  }
  EXPECT_THAT(run(directory_ / "a.safetensors", false), HasSubstr("format: pt"));
}

TEST_F(InspectCommand, ShowsKerasFiles) {
  const fs::path folder = fs::path(TEST_DATA) / "keras";
  const auto archive = parse_json(run(folder / "dense.keras", true)),
             legacy = parse_json(run(folder / "legacy.h5", true));
  EXPECT_EQ(archive["kind"], "keras");
  EXPECT_EQ(archive["tensors"][0]["name"], "layers/dense/vars/0");
  EXPECT_EQ(archive["tensors"][0]["shape"], nlohmann::json({4, 8}));
  EXPECT_EQ(legacy["kind"], "hdf5");
  EXPECT_EQ(legacy["problems"], 0);
}

TEST_F(InspectCommand, ShowsEvents) {
  EventWriter writer(directory_);
  for (int step = 1; step <= 3; ++step) writer.add_scalar("loss", 1.f / static_cast<float>(step), step);
  writer.add_graph({.nodes = {{.name = "x", .op = "Placeholder"}}});
  writer.close();
  const auto json = parse_json(run(writer.path(), true));
  EXPECT_EQ(json["records"], 5);
  EXPECT_EQ(json["graph_nodes"], 1);
  EXPECT_EQ(json["tags"][0]["count"], 3);
  EXPECT_EQ(json["tags"][0]["first_step"], 1);
  EXPECT_EQ(json["tags"][0]["last_step"], 3);
  EXPECT_THAT(run(writer.path(), false), ContainsRegex("loss +3 +1 +3 +0.333333"));
  fs::resize_file(writer.path(), fs::file_size(writer.path()) - 3);
  EXPECT_THAT(run(writer.path(), false, 1), HasSubstr("4 records, the last one incomplete"));
  EXPECT_EQ(parse_json(run(writer.path(), true, 1))["truncated"], true);
}

TEST_F(InspectCommand, ShowsAModel) {
  const fs::path model = directory_ / "model.json";
  const auto write = [&](const std::string& manifest) {
    std::ofstream(model) << R"({"format": "layers-model", "modelTopology": {"class_name": "Sequential", "config":
        {"name": "net", "layers": [{"class_name": "Dense"}, {"class_name": "Dropout"}]}}, "weightsManifest": )"
                         << manifest << "}";
  };
  const std::string weights =
      R"([{"paths": ["w.bin"], "weights": [{"name": "dense/kernel", "shape": [2, 3], "dtype": "float32"},
          {"name": "dense/bias", "shape": [3], "dtype": "float32", "quantization": {"dtype": "uint8"}}]}])";
  write(weights);
  EXPECT_THAT(run(model, false, 1), HasSubstr("\"w.bin\" is missing"));
  std::ofstream(directory_ / "w.bin") << std::string(27, 'x');
  const auto json = parse_json(run(model, true));
  EXPECT_EQ(json["kind"], "layers model");
  EXPECT_EQ(json["bytes"], 27);
  EXPECT_EQ(json["metadata"]["layers"], "2: Dense, Dropout");
  EXPECT_EQ(json["tensors"][1]["dtype"], "float32 (uint8)");
  fs::resize_file(directory_ / "w.bin", 26);
  EXPECT_THAT(run(model, false, 1), HasSubstr("its files have 26 bytes, the manifest says 27"));
  for (const char* wrong :
       {"3", "[3]", "[{}]", R"([{"weights": [3]}])", R"([{"weights": []}])", R"([{"paths": [3], "weights": []}])",
        R"([{"paths": [], "weights": [{"name": "x", "shape": [-1]}]}])",
        R"([{"paths": [], "weights": [{"name": "x", "shape": [4294967296, 4294967296]}]}])"}) {
    write(wrong);
    run(model, false, 1);
    EXPECT_THAT(errors_, HasSubstr("model \"")) << wrong;
  }
  std::ofstream(model) << "{}";
  run(model, false, 1);
  EXPECT_THAT(errors_, HasSubstr("no modelTopology"));
}

TEST_F(InspectCommand, RefusesOtherFiles) {
  std::ofstream(directory_ / "text") << "hello";
  run(directory_ / "text", false, 1);
  EXPECT_THAT(errors_, HasSubstr("neither a checkpoint"));
  run(directory_ / "absent", false, 1);
  EXPECT_THAT(errors_, HasSubstr("there is no file"));
  run("https://example.org/absent.npz", false, 1);
  EXPECT_THAT(errors_, HasSubstr("it is a URL, and only local files are read: download it first"));
  run(directory_, false, 1);
  EXPECT_THAT(errors_, HasSubstr("has no checkpoint"));
}

}  // namespace
}  // namespace plimsoll
