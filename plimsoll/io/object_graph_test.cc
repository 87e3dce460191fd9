#include "plimsoll/io/object_graph.h"

#include "plimsoll/io/io_testing.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

TEST(ObjectGraph, KeysAreEscapedAsTensorflowDoes) {
  EXPECT_EQ(object_key({"layer_with_weights-0", "kernel"}), "layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE");
  EXPECT_EQ(object_key({"a.b", "c/d"}), "a..b/c.Sd/.ATTRIBUTES/VARIABLE_VALUE");
}

TEST(ObjectGraph, NamesWhatWasPutIn) {
  const std::vector<ObjectVariable> variables = {
      {{"model", "dense", "kernel"}, "dense/kernel"}, {{"model", "dense", "bias"}, "dense/bias"}, {{"step"}, "step"}};
  std::vector<std::string> found;
  for (const ObjectName& name : parse_object_graph(make_object_graph(variables)))
    found.push_back(name.full_name + "=" + name.key);
  EXPECT_THAT(found, testing::UnorderedElementsAre("dense/kernel=model/dense/kernel/.ATTRIBUTES/VARIABLE_VALUE",
                                                   "dense/bias=model/dense/bias/.ATTRIBUTES/VARIABLE_VALUE",
                                                   "step=step/.ATTRIBUTES/VARIABLE_VALUE"));
}

TEST(ObjectGraph, RefusesInvalidPaths) {
  const auto make = [](std::vector<ObjectVariable> variables) { return make_object_graph(variables); };
  EXPECT_THROW(make({{{}, "x"}}), InvalidArgument);
  EXPECT_THROW(make({{{""}, "x"}}), InvalidArgument);
  EXPECT_THROW(make({{{"a"}, "x"}, {{"a"}, "y"}}), InvalidArgument);
  EXPECT_THROW(make({{{"a"}, "x"}, {{"a", "b"}, "y"}}), InvalidArgument);
  EXPECT_THROW(make({{{"a", "b"}, "x"}, {{"a"}, "y"}}), InvalidArgument);
  EXPECT_THROW(parse_object_graph("\x0a\xff"), Corruption);
}

TEST(ObjectGraph, RealOnesNameTheKeysOfTheirCheckpoints) {
  const fs::path fetched = fs::path(SHARED_DATA) / "fetched";
  if (!fs::exists(fetched)) GTEST_SKIP() << "not available: " << fetched;
  std::size_t graphs = 0;
  for (const char* folder : {"tf_checkpoint", "google_research", "tfjs"})
    for (const auto& entry : fs::recursive_directory_iterator(fetched / folder)) {
      if (entry.path().extension() != ".index") continue;
      const fs::path prefix = fs::path(entry.path()).replace_extension();
      const BundleReader reader(prefix);
      if (!reader.contains(kObjectGraphKey)) continue;
      const std::uint32_t shard = reader.entry(kObjectGraphKey).shard;
      if (!fs::exists(bundle_data_path(prefix, shard, reader.num_shards()))) continue;
      ++graphs;
      for (const ObjectName& name : read_object_graph(reader)) EXPECT_TRUE(reader.contains(name.key)) << name.key;
    }
  EXPECT_GE(graphs, 10u);
}

}  // namespace
}  // namespace plimsoll
