// Checkpoints that others wrote.
#include "plimsoll/io/bundle.h"
#include "plimsoll/io/internal/table.h"
#include "plimsoll/io/io_testing.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

const fs::path kFetched = fs::path(SHARED_DATA) / "fetched";
#define REQUIRE_FETCHED() \
  if (!fs::exists(kFetched)) GTEST_SKIP() << "real files are not at hand: " << kFetched

class RealBundle : public FileFixture {};

std::vector<fs::path> all_prefixes() {
  std::vector<fs::path> found;
  for (const char* folder : {"tf_checkpoint", "google_research", "tfjs"})
    for (const auto& entry : fs::recursive_directory_iterator(kFetched / folder))
      if (entry.path().extension() == ".index") found.push_back(fs::path(entry.path()).replace_extension());
  return found;
}

float first(const BundleReader& reader, const char* key) {
  const Tensor tensor = reader.read(key);
  return tensor.dtype() == f32 ? tensor.data<float>()[0] : static_cast<float>(tensor.item<double>());
}

TEST_F(RealBundle, EveryOneReadsWithRightChecksums) {
  REQUIRE_FETCHED();
  const std::vector<fs::path> prefixes = all_prefixes();
  EXPECT_GE(prefixes.size(), 23u);
  std::size_t tensors = 0, strings = 0, without_data = 0;
  for (const fs::path& prefix : prefixes) {
    SCOPED_TRACE(prefix);
    const BundleReader reader(prefix);
    for (const BundleEntry& entry : reader.entries()) {
      if (!fs::exists(bundle_data_path(prefix, entry.shard, reader.num_shards()))) {
        EXPECT_THROW(reader.verify(entry.key), NotFound);
        ++without_data;
      } else if (entry.is_string()) {
        EXPECT_EQ(reader.read_strings(entry.key).size(), entry.shape.size());
        ++strings;
      } else {
        EXPECT_EQ(reader.read(entry.key).nbytes(), entry.size);
        reader.verify(entry.key);
        ++tensors;
      }
    }
  }
  EXPECT_GE(tensors, 200u);
  EXPECT_GE(strings, 15u);
  RecordProperty("without_data", static_cast<int>(without_data));
}

TEST_F(RealBundle, ValuesAreThoseOfTensorflowServing) {
  REQUIRE_FETCHED();
  const fs::path models =
      kFetched / "tf_checkpoint/tensorflow_serving/tensorflow_serving/servables/tensorflow/testdata";
  const BundleReader compressed(models / "saved_model_half_plus_two_cpu/00000123/variables/variables");
  EXPECT_EQ(first(compressed, "a"), 0.5f);
  EXPECT_EQ(first(compressed, "b"), 2.f);
  EXPECT_EQ(first(compressed, "c"), 3.f);
  const BundleReader three(models / "saved_model_half_plus_three/00000123/variables/variables");
  EXPECT_EQ(first(three, "b"), 3.f);
  const BundleReader counter(models / "saved_model_counter/00000123/variables/variables");
  EXPECT_EQ(first(counter, "counter"), 0.f);
}

TEST_F(RealBundle, ValuesOfKerasWithTwoShardsAreAsListed) {
  REQUIRE_FETCHED();
  const BundleReader reader(kFetched / "tf_checkpoint/tf_keras/tf_keras/mixed_precision/testdata/lso_ckpt_tf2.2/ckpt");
  EXPECT_EQ(reader.num_shards(), 2u);
  bool found = false;
  for (const BundleEntry& entry : reader.entries())
    if (entry.key.ends_with("kernel/.ATTRIBUTES/VARIABLE_VALUE")) {
      const std::vector<float> kernel = reader.read(entry.key).to_vector<float>();
      EXPECT_EQ(kernel, (std::vector<float>{9.2296848f, 10.9011154f, 10.3707628f, 9.7573624f}));
      found = true;
    }
  EXPECT_TRUE(found);
  EXPECT_GT(reader.read_strings("_CHECKPOINTABLE_OBJECT_GRAPH").at(0).size(), 100u);
}

TEST_F(RealBundle, ValuesOfOtherWritersAreAsListed) {
  REQUIRE_FETCHED();
  const BundleReader rust(kFetched /
                          "tf_checkpoint/tensorflow_rust/test_resources/regression-model/variables/variables");
  EXPECT_EQ(first(rust, "w"), -0.85786223f);
  const BundleReader policy(
      kFetched / "google_research/dichotomy_of_control/tests/testdata/FrozenLake-v0/train/policy/ckpt-100000");
  EXPECT_EQ(policy.read("save_counter/.ATTRIBUTES/VARIABLE_VALUE").item<std::int64_t>(), 20);
  const BundleReader protenn(kFetched / "google_research/protenn/testdata/per_residue_saved_model/model.ckpt-1");
  EXPECT_EQ(protenn.entries().size(), 158u);
}

TEST_F(RealBundle, VersionOneIsNamedAsSuch) {
  REQUIRE_FETCHED();
  const fs::path old = kFetched /
                       "tf_checkpoint/tensorflow_serving/tensorflow_serving/servables/tensorflow/testdata/"
                       "bad_half_plus_two/00000123/export";
  EXPECT_THAT(message_of<Unsupported>([&] { BundleReader reader(old); }), testing::HasSubstr("version 1"));
}

// Every uncompressed one, written anew, has the same index, byte for byte.
TEST_F(RealBundle, RewritingGivesTheSameIndex) {
  REQUIRE_FETCHED();
  std::size_t rewritten = 0;
  for (const fs::path& prefix : all_prefixes()) {
    SCOPED_TRACE(prefix);
    const BundleReader reader(prefix);
    std::vector<const BundleEntry*> order;
    bool whole = true;
    for (const BundleEntry& entry : reader.entries()) {
      order.push_back(&entry);
      whole &= fs::exists(bundle_data_path(prefix, entry.shard, reader.num_shards()));
    }
    const std::string original = get(bundle_index_path(prefix));
    TableWriter table;
    for (const TableEntry& entry : read_table(InputFile(bundle_index_path(prefix)))) table.add(entry.key, entry.value);
    if (!whole || table.finish() != original) continue;  // Its blocks are compressed.
    std::sort(order.begin(), order.end(),
              [](auto* a, auto* b) { return std::pair(a->shard, a->offset) < std::pair(b->shard, b->offset); });
    const fs::path copy = directory_ / std::to_string(rewritten) / "variables";
    BundleWriter writer(copy, {.num_shards = reader.num_shards()});
    for (const BundleEntry* entry : order)
      entry->is_string() ? writer.add_strings(entry->key, entry->shape, reader.read_strings(entry->key), entry->shard)
                         : writer.add(entry->key, reader.read(entry->key), entry->shard);
    writer.commit();
    EXPECT_TRUE(get(bundle_index_path(copy)) == original);
    for (std::size_t shard = 0; shard < reader.num_shards(); ++shard)
      EXPECT_TRUE(get(bundle_data_path(copy, shard, reader.num_shards())) ==
                  get(bundle_data_path(prefix, shard, reader.num_shards())));
    ++rewritten;
  }
  EXPECT_GE(rewritten, 14u);
}

TEST_F(RealBundle, TablesOfManyBlocksAreRead) {
  const fs::path path = fs::path(SHARED_DATA) / "fixtures/selfmade/sstable/multiblock_200keys.index";
  if (!fs::exists(path)) GTEST_SKIP() << "not at hand: " << path;
  EXPECT_EQ(read_table(InputFile(path)).size(), 201u);  // And the header.
}

}  // namespace
}  // namespace plimsoll
