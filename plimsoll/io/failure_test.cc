// Every allocation during saving and loading fails once: nothing is left behind, and existing files are unchanged.
#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/io/checkpoint.h"
#include "plimsoll/io/checkpoint_state.h"
#include "plimsoll/io/event_reader.h"
#include "plimsoll/io/event_writer.h"
#include "plimsoll/io/io_testing.h"
#include "plimsoll/io/npz.h"
#include "plimsoll/io/safetensors.h"
#include "plimsoll/memory/budget.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

// In memory where possible: waiting for the disk thousands of times would be slow.
class Failure : public FileFixture {
 protected:
  Failure() : FileFixture(fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) {}

  static std::vector<NamedTensor> model(float value) {
    return {{"w", tensor_of<float>({2}, {value, value})}, {"b", tensor_of<float>({1}, {value})}};
  }
  static TensorTree tree(float value) {
    return {{"w", tensor_of<float>({2}, {value, value})}, {"list", {tensor_of<float>({1}, {value})}}};
  }

  // Runs `work` with the first, the second, ... allocation failing, until none is left to fail; `check` after each.
  template <class Work, class Check>
  static int fail_each(Work&& work, Check&& check) {
    const MemoryInfo before = memory();
    for (std::size_t allocations = 0;; ++allocations) {
      bool thrown = false;
      fail_heap_after(allocations);
      try {
        work();
      } catch (const std::bad_alloc&) {
        thrown = true;
      } catch (const Error&) {  // Some report it as an Error.
        thrown = true;
      }
      const bool failed = disarm_heap();
      SCOPED_TRACE("allocation " + std::to_string(allocations));
      check(!thrown);
      EXPECT_EQ(memory().num_tensors, before.num_tensors);
      EXPECT_EQ(memory().num_bytes, before.num_bytes);
      if (!failed || testing::Test::HasFailure()) return static_cast<int>(allocations);
    }
  }
  void expect_no_temporaries() const {
    for (const std::string& name : names()) EXPECT_THAT(name, Not(HasSubstr(".tmp-")));
  }
};

TEST_F(Failure, OfSavingLeavesACheckpointThatLoads) {
  const std::vector<NamedTensor> tensors = model(2);
  CheckpointKeeper keeper({.max_to_keep = 2});
  std::int64_t step = 0;
  for (; step < 2; ++step) keeper.save(directory_ / "m", step, tensors);
  const int failures = fail_each([&] { keeper.save(directory_ / "m", ++step, tensors); },
                                 [&](bool saved) {
                                   const std::string latest = latest_checkpoint(directory_);
                                   ASSERT_FALSE(latest.empty());
                                   EXPECT_EQ(BundleReader(latest).read("b").item<float>(), 2.f);
                                   if (saved) {
                                     EXPECT_TRUE(latest.ends_with("-" + std::to_string(step))) << latest;
                                   }
                                   expect_no_temporaries();
                                   keeper.save(directory_ / "m", ++step, tensors);  // Removes leftovers.
                                   EXPECT_EQ(names().size(), 5u) << "two checkpoints and the file that names them";
                                 });
  EXPECT_GT(failures, 50);
}

TEST_F(Failure, OfSavingToTheSameNameLeavesTheOldOrTheNew) {
  const std::vector<NamedTensor> tensors = model(2);
  save_checkpoint(directory_ / "m", model(1));
  fail_each([&] { save_checkpoint(directory_ / "m", tensors); },
            [&](bool saved) {
              const float value = BundleReader(directory_ / "m").read("b").item<float>();
              EXPECT_TRUE(value == 2 || (value == 1 && !saved)) << value;
              EXPECT_EQ(BundleReader(directory_ / "m").read("w").at<float>({1}), value);
              expect_no_temporaries();
              save_checkpoint(directory_ / "m", model(1));
            });
}

TEST_F(Failure, OfRestoringLeavesTheTargets) {
  save_checkpoint(directory_ / "m", model(2));
  const Tensor w = tensor_of<float>({2}, {0, 0}), b = tensor_of<float>({1}, {0});
  const int failures = fail_each(
      [&] {
        restore_checkpoint(directory_ / "m", std::vector<RestoreTarget>{target_of("w", w), target_of("b", b)});
      },
      [&](bool restored) {
        EXPECT_EQ(w.at<float>({1}), restored ? 2.f : 0.f);
        EXPECT_EQ(b.item<float>(), restored ? 2.f : 0.f);
      });
  EXPECT_GT(failures, 20);
}

TEST_F(Failure, OfMemoryForTensorsLeavesNothing) {
  save_checkpoint(directory_ / "m", model(2));
  save_safetensors(directory_ / "a.safetensors", tree(2));
  save_npz(directory_ / "a.npz", tree(2));
  const MemoryInfo before = memory();
  int fitted = 0;
  for (std::size_t limit = 64; limit <= 8192; limit += 64) {
    const Budget budget("small", limit);
    {
      const BudgetScope use(budget);
      try {
        const BundleReader reader(directory_ / "m");
        for (const BundleEntry& entry : reader.entries()) reader.verify(entry.key);
        const Tensor w = reader.read("w"), b = reader.read("b");
        const TensorTree safe = load_safetensors(directory_ / "a.safetensors"), npz = load_npz(directory_ / "a.npz");
        ++fitted;
      } catch (const OutOfMemory&) {
      }
    }
    EXPECT_EQ(budget.used(), 0u);
    EXPECT_EQ(memory().num_tensors, before.num_tensors);
  }
  EXPECT_GT(fitted, 0);
  EXPECT_LT(fitted, 128);
}

TEST_F(Failure, OfArchivesLeavesTheOldOnes) {
  const TensorTree next = tree(2);
  save_safetensors(directory_ / "a.safetensors", tree(1));
  save_npz(directory_ / "a.npz", tree(1));
  fail_each(
      [&] {
        save_safetensors(directory_ / "a.safetensors", next, {{"key", "value"}});
      },
      [&](bool saved) {
        EXPECT_EQ(load_safetensors(directory_ / "a.safetensors")["w"].tensor().at<float>({0}), saved ? 2.f : 1.f);
        expect_no_temporaries();
      });
  fail_each([&] { save_npz(directory_ / "a.npz", next); },
            [&](bool saved) {
              EXPECT_EQ(load_npz(directory_ / "a.npz")["w"].tensor().at<float>({0}), saved ? 2.f : 1.f);
              expect_no_temporaries();
            });
  fail_each([&] { load_safetensors(directory_ / "a.safetensors"); }, [](bool) {});
  fail_each([&] { load_npz(directory_ / "a.npz"); }, [](bool) {});
}

TEST_F(Failure, OfEventsLeavesWholeRecords) {
  EventWriter writer(directory_);
  const Tensor values = tensor_of<float>({3}, {1, 2, 3}), pixels = patterned({2, 2, 3}, u8);
  std::size_t written = 1;
  fail_each(
      [&] {
        writer.add_scalar("loss", 1, 1);
        ++written;
        writer.add_histogram("w", values, 1);
        ++written;
        writer.add_image("i", pixels, 1);
        ++written;
      },
      [&](bool) {
        EventReader reader(writer.path());
        std::size_t records = 0;
        while (reader.next()) ++records;
        EXPECT_FALSE(reader.is_truncated());
        EXPECT_EQ(records, written);
      });
}

}  // namespace
}  // namespace plimsoll
