// Checkpoints written by other programs.
#include "plimsoll/io/bundle.h"
#include "plimsoll/io/checkpoint_state.h"
#include "plimsoll/io/internal/table.h"
#include "plimsoll/io/io_testing.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

const fs::path kFetched = fs::path(SHARED_DATA) / "fetched";
#define REQUIRE_FETCHED() \
  if (!fs::exists(kFetched)) GTEST_SKIP() << "real files are not available: " << kFetched

class RealBundle : public FileFixture {};

std::vector<fs::path> all_prefixes() {
  std::vector<fs::path> found;
  for (const char* folder : {"tf_checkpoint", "google_research", "tfjs"})
    for (const auto& entry : fs::recursive_directory_iterator(kFetched / folder))
      if (entry.path().extension() == ".index") found.push_back(fs::path(entry.path()).replace_extension());
  return found;
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

std::vector<double> values(const Tensor& tensor) {
  std::vector<double> found;
  const HostRead read(tensor);
  visit_dtype(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    for (const T element : read.span<T>()) found.push_back(static_cast<double>(element));
  });
  return found;
}

// The first elements of tensors, as listed for these files.
struct Listed {
  const char* prefix;  // Below a folder of models.
  const char* key;
  std::vector<double> expected;
};
constexpr const char* kServing = "tf_checkpoint/tensorflow_serving/tensorflow_serving/servables/tensorflow/testdata/";
constexpr const char* kVariables = "/00000123/variables/variables";

void expect_listed(const fs::path& folder, const Listed& listed) {
  SCOPED_TRACE(std::string(listed.prefix) + " " + listed.key);
  const std::vector<double> found = values(BundleReader(folder.native() + listed.prefix).read(listed.key));
  ASSERT_GE(found.size(), listed.expected.size());
  for (std::size_t i = 0; i < listed.expected.size(); ++i)
    EXPECT_NEAR(found[i], listed.expected[i], 1e-6 * std::max(1., std::abs(listed.expected[i])));
}

TEST_F(RealBundle, ValuesOfTensorflowServingAreAsListed) {
  REQUIRE_FETCHED();
  const std::string two = std::string("saved_model_half_plus_two_cpu") + kVariables,
                    mkl = std::string("saved_model_half_plus_two_mkl") + kVariables,
                    objects = std::string("saved_model_half_plus_two_tf2_cpu") + kVariables,
                    three = std::string("saved_model_half_plus_three") + kVariables,
                    counter = std::string("saved_model_counter") + kVariables;
  const Listed all[] = {
      {two.c_str(), "a", {0.5}},
      {two.c_str(), "b", {2}},
      {two.c_str(), "c", {3}},
      {mkl.c_str(), "a", {0.5}},
      {mkl.c_str(), "conv2d/kernel", {-0.52239597}},
      {mkl.c_str(), "conv2d_1/kernel", {-1.045112}},
      {mkl.c_str(), "conv2d_2/kernel", {1.5779432}},
      {mkl.c_str(), "conv2d_2/bias", {0}},
      {objects.c_str(), "a/.ATTRIBUTES/VARIABLE_VALUE", {0.5}},
      {objects.c_str(), "b/.ATTRIBUTES/VARIABLE_VALUE", {2}},
      {objects.c_str(), "c/.ATTRIBUTES/VARIABLE_VALUE", {3}},
      {three.c_str(), "a", {0.5}},
      {three.c_str(), "b", {3}},
      {three.c_str(), "c", {3}},
      {counter.c_str(), "counter", {0}},
  };
  for (const Listed& listed : all) expect_listed(kFetched / kServing, listed);
  const BundleReader text(kFetched / kServing / "tf_text_regression/01/variables/variables");
  EXPECT_EQ(text.entries().size(), 1u);
}

TEST_F(RealBundle, ValuesOfKerasWithTwoShardsAreAsListed) {
  REQUIRE_FETCHED();
  const fs::path folder = kFetched / "tf_checkpoint/tf_keras/tf_keras/mixed_precision/testdata";
  for (const char* prefix : {"/lso_ckpt_tf2.2/ckpt", "/lso_savedmodel_tf2.2/variables/variables"}) {
    const Listed all[] = {
        {prefix,
         "layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE",
         {9.2296848, 10.9011154, 10.3707628, 9.7573624}},
        {prefix, "layer_with_weights-0/bias/.ATTRIBUTES/VARIABLE_VALUE", {10.049943, 9.9176912}},
        {prefix,
         "layer_with_weights-0/kernel/.OPTIMIZER_SLOT/optimizer/base_optimizer/momentum/.ATTRIBUTES/VARIABLE_VALUE",
         {10.049943, 9.9176912, 10.049943, 9.9176912}},
        {prefix, "optimizer/base_optimizer/iter/.ATTRIBUTES/VARIABLE_VALUE", {1}},
        {prefix, "optimizer/base_optimizer/learning_rate/.ATTRIBUTES/VARIABLE_VALUE", {0.1}},
        {prefix, "optimizer/loss_scale/current_loss_scale/.ATTRIBUTES/VARIABLE_VALUE", {32768}},
        {prefix, "optimizer/loss_scale/good_steps/.ATTRIBUTES/VARIABLE_VALUE", {1}},
    };
    for (const Listed& listed : all) expect_listed(folder, listed);
  }
  const char* model = "/lso_savedmodel_tf2.2/variables/variables";
  expect_listed(folder, {model, "keras_api/metrics/0/total/.ATTRIBUTES/VARIABLE_VALUE", {9968.0977}});
  expect_listed(folder, {model, "keras_api/metrics/0/count/.ATTRIBUTES/VARIABLE_VALUE", {1}});
  const BundleReader reader(folder / "lso_ckpt_tf2.2/ckpt");
  EXPECT_EQ(reader.num_shards(), 2u);
  EXPECT_GT(reader.read_strings("_CHECKPOINTABLE_OBJECT_GRAPH").at(0).size(), 100u);
  EXPECT_EQ(latest_checkpoint(folder / "lso_ckpt_tf2.2"), (folder / "lso_ckpt_tf2.2/ckpt").string());
}

TEST_F(RealBundle, ValuesOfOtherWritersAreAsListed) {
  REQUIRE_FETCHED();
  const char *rust2 = "/tf_checkpoint/tensorflow_rust/examples/regression_savedmodel/variables/variables",
             *rust1 = "/tf_checkpoint/tensorflow_rust/test_resources/regression-model/variables/variables",
             *policy = "/google_research/dichotomy_of_control/tests/testdata/FrozenLake-v0/train/policy/ckpt-100000",
             *data =
                 "/google_research/rl_repr/tests/testdata/"
                 "lowrank_tree_tabularTrue_alpha-0.125_seed0_numtraj500_maxtraj3/dataset-ckpt-1";
  const Listed all[] = {
      {rust2, "w/.ATTRIBUTES/VARIABLE_VALUE", {0.20429754}},
      {rust2, "b/.ATTRIBUTES/VARIABLE_VALUE", {0}},
      {rust2, "optimizer/learning_rate/.ATTRIBUTES/VARIABLE_VALUE", {0.5}},
      {rust2, "optimizer/iter/.ATTRIBUTES/VARIABLE_VALUE", {0}},
      {rust1, "w", {-0.85786223}},
      {rust1, "b", {0}},
      {policy, "save_counter/.ATTRIBUTES/VARIABLE_VALUE", {20}},
      {policy, "global_step/.ATTRIBUTES/VARIABLE_VALUE", {100000}},
      {data, "save_counter/.ATTRIBUTES/VARIABLE_VALUE", {1}},
      {data, "dataset/_data_table/_storage/step_type/.ATTRIBUTES/VARIABLE_VALUE", {0, 1, 2, 0}},
      {data, "dataset/_data_table/_storage/observation/.ATTRIBUTES/VARIABLE_VALUE", {0, 10, 44, 6}},
  };
  for (const Listed& listed : all) expect_listed(kFetched, listed);
  const fs::path protenn = kFetched / "google_research/protenn/testdata/per_residue_saved_model";
  EXPECT_EQ(BundleReader(protenn / "model.ckpt-1").entries().size(), 158u);
}

TEST_F(RealBundle, ValuesOfTensorflowJsAreAsListed) {
  REQUIRE_FETCHED();
  const fs::path folder = kFetched / "tfjs/tfjs/tfjs-node/test_objects/saved_model";
  const Listed all[] = {
      {"/times_three_float/variables/variables", "v/.ATTRIBUTES/VARIABLE_VALUE", {3}},
      {"/times_two_int/variables/variables", "v/.ATTRIBUTES/VARIABLE_VALUE", {2}},
      {"/int64_multiply/variables/variables", "v1/.ATTRIBUTES/VARIABLE_VALUE", {3}},
      {"/int64_multiply/variables/variables", "v2/.ATTRIBUTES/VARIABLE_VALUE", {2}},
      {"/uint8_multiply/variables/variables", "v1/.ATTRIBUTES/VARIABLE_VALUE", {3}},
      {"/uint8_multiply/variables/variables", "v2/.ATTRIBUTES/VARIABLE_VALUE", {2}},
      {"/model_multi_output/variables/variables", "v/.ATTRIBUTES/VARIABLE_VALUE", {3}},
      {"/model_multi_output/variables/variables", "two/.ATTRIBUTES/VARIABLE_VALUE", {2}},
      {"/module_with_multiple_signatures/variables/variables", "two/.ATTRIBUTES/VARIABLE_VALUE", {2}},
  };
  for (const Listed& listed : all) expect_listed(folder, listed);
}

// One line, two with relative names, an absolute one.
TEST_F(RealBundle, StateFilesNameTheirLatest) {
  REQUIRE_FETCHED();
  const fs::path research = kFetched / "google_research";
  EXPECT_EQ(fs::path(latest_checkpoint(research / "dichotomy_of_control/tests/testdata/FrozenLake-v0/train/policy"))
                .filename(),
            "ckpt-100000");
  const fs::path protenn = research / "protenn/testdata/per_residue_saved_model";
  EXPECT_EQ(fs::path(latest_checkpoint(protenn)).filename(), "model.ckpt-1");
  EXPECT_THAT(read_checkpoint_state(protenn).all, testing::ElementsAre("model.ckpt-0", "model.ckpt-1"));
  const CheckpointState absolute = read_checkpoint_state(kFetched / kServing / "bad_half_plus_two/00000123");
  EXPECT_TRUE(fs::path(absolute.latest).is_absolute());
}

TEST_F(RealBundle, VersionOneIsNamedAsSuch) {
  REQUIRE_FETCHED();
  const fs::path old = kFetched /
                       "tf_checkpoint/tensorflow_serving/tensorflow_serving/servables/tensorflow/testdata/"
                       "bad_half_plus_two/00000123/export";
  EXPECT_THAT(message_of<Unsupported>([&] { BundleReader reader(old); }), testing::HasSubstr("version 1"));
}

// Every uncompressed one, written again, has the same index, byte for byte.
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
  if (!fs::exists(path)) GTEST_SKIP() << "not available: " << path;
  EXPECT_EQ(read_table(InputFile(path)).size(), 201u);  // And the header.
}

}  // namespace
}  // namespace plimsoll
