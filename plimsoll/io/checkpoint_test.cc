#include "plimsoll/io/checkpoint.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/log.h"
#include "plimsoll/io/checkpoint_state.h"
#include "plimsoll/io/io_testing.h"

namespace plimsoll {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

class Checkpoint : public FileFixture {
 protected:
  void save(const fs::path& prefix) {
    save_checkpoint(prefix,
                    std::vector<NamedTensor>{{"w", tensor_of<float>({2}, {1, 2})}, {"b", tensor_of<float>({1}, {3})}});
  }
};

TEST_F(Checkpoint, KeepsTheLatestOnesAndNamesThem) {
  EXPECT_EQ(latest_checkpoint(directory_), "");
  CheckpointKeeper keeper({.max_to_keep = 2});
  const std::vector<NamedTensor> tensors = {{"w", tensor_of<float>({1}, {1})}};
  for (int step = 1; step <= 3; ++step) {
    const std::string path = keeper.save(directory_ / "run" / "model.ckpt", step, tensors);
    EXPECT_EQ(path, (directory_ / "run" / "model.ckpt").string() + "-" + std::to_string(step));
    EXPECT_EQ(latest_checkpoint(directory_ / "run"), path);
  }
  EXPECT_FALSE(fs::exists(directory_ / "run/model.ckpt-1.index"));
  EXPECT_FALSE(fs::exists(directory_ / "run/model.ckpt-1.data-00000-of-00001"));
  EXPECT_EQ(get(directory_ / "run/checkpoint"),
            "model_checkpoint_path: \"model.ckpt-3\"\nall_model_checkpoint_paths: \"model.ckpt-2\"\n"
            "all_model_checkpoint_paths: \"model.ckpt-3\"\n");
  keeper.save(directory_ / "run" / "model.ckpt", 2, tensors);  // Again: now the latest.
  EXPECT_EQ(read_checkpoint_state(directory_ / "run").all, (std::vector<std::string>{"model.ckpt-3", "model.ckpt-2"}));
  EXPECT_THROW(keeper.save(directory_ / "run" / "checkpoint", {}, tensors), InvalidArgument);

  CheckpointKeeper after_restart({.max_to_keep = 1});
  after_restart.recover(directory_ / "run");
  after_restart.recover(directory_ / "run");
  EXPECT_EQ(after_restart.kept().size(), 2u);
  after_restart.save(directory_ / "run" / "model.ckpt", {}, tensors);
  EXPECT_EQ(latest_checkpoint(directory_ / "run"), (directory_ / "run/model.ckpt").string());
  EXPECT_FALSE(fs::exists(directory_ / "run/model.ckpt-3.index"));
  CheckpointKeeper().recover(directory_ / "missing");
}

TEST_F(Checkpoint, StateFilesOfAllWritersAreRead) {
  const auto parse = [](const char* text) { return parse_checkpoint_state(text, "checkpoint"); };
  EXPECT_EQ(parse("model_checkpoint_path: \"ckpt-100000\"").latest, "ckpt-100000");
  const CheckpointState whole = parse(
      "# written by a manager\nmodel_checkpoint_path: \"a\\\"\\\\\\101\\n\"  all_model_checkpoint_paths: 'x'\n"
      "all_model_checkpoint_paths:\"y\"\nall_model_checkpoint_timestamps: 1548797801.25\n"
      "last_preserved_timestamp: 2e3\nfuture_field: 7\nfuture_text: \"z\"\n");
  EXPECT_EQ(whole.latest, "a\"\\A\n");
  EXPECT_THAT(whole.all, ElementsAre("x", "y"));
  EXPECT_THAT(whole.timestamps, ElementsAre(1548797801.25));
  EXPECT_EQ(whole.last_preserved_timestamp, 2000);
  EXPECT_EQ(format_checkpoint_state(parse(format_checkpoint_state(whole).c_str())), format_checkpoint_state(whole));
  EXPECT_EQ(parse("").latest, "");
  for (const char* bad : {"model_checkpoint_path", "model_checkpoint_path: 7", "model_checkpoint_path: \"a",
                          "model_checkpoint_path: \"a\n\"", ": \"a\"", "last_preserved_timestamp: x", "a: \"\\"})
    EXPECT_THAT(message_of<Corruption>([&] { parse(bad); }), HasSubstr("line ")) << bad;
}

TEST_F(Checkpoint, LatestNeedsTheFilesToBeThere) {
  std::vector<std::string> logged;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view text) { logged.emplace_back(text); });
  write_checkpoint_state(directory_, {.latest = "gone"});
  EXPECT_EQ(latest_checkpoint(directory_), "");
  put(directory_ / "checkpoint", "not such a file");
  EXPECT_EQ(latest_checkpoint(directory_), "");
  put(directory_ / "checkpoint", "model_checkpoint_path: \"\"");
  EXPECT_THROW(latest_checkpoint(directory_), InvalidArgument);
  save(directory_ / "elsewhere" / "m");
  write_checkpoint_state(directory_, {.latest = (directory_ / "elsewhere" / "m").string()});
  EXPECT_EQ(latest_checkpoint(directory_), (directory_ / "elsewhere" / "m").string());
  set_log_sink(before);
  EXPECT_EQ(logged.size(), 2u);
}

TEST_F(Checkpoint, RestoresAllOrNothing) {
  save(directory_ / "m");
  const Tensor w = tensor_of<float>({2}, {0, 0}), b = tensor_of<float>({1}, {0});
  restore_checkpoint(directory_ / "m", std::vector<RestoreTarget>{target_of("w", w), target_of("b", b)});
  EXPECT_EQ(w.to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(b.item<float>(), 3.f);
  restore_checkpoint(directory_ / "m", std::vector<RestoreTarget>{target_of("b", b)});  // Extra tensors are allowed.

  const Tensor fresh = tensor_of<float>({2}, {0, 0}), wrong = tensor_of<float>({2}, {0, 0});
  EXPECT_THAT(
      message_of<NotFound>([&] {
        restore_checkpoint(directory_ / "m", std::vector<RestoreTarget>{target_of("v", fresh), target_of("u", fresh),
                                                                        target_of("b", wrong)});
      }),
      AllOf(HasSubstr("2 missing: \"v\", \"u\""),
            HasSubstr("\"b\" (float32 [1] in the checkpoint, float32 [2] wanted)"), HasSubstr("not requested: \"w\"")));
  EXPECT_THROW(
      restore_checkpoint(directory_ / "m", std::vector<RestoreTarget>{target_of("w", fresh), target_of("b", wrong)}),
      InvalidArgument);
  EXPECT_EQ(fresh.to_vector<float>(), (std::vector<float>{0, 0}));

  std::string data = get(bundle_data_path(directory_ / "m", 0, 1));
  data.back() ^= 1;  // Belongs to "w", which comes last.
  put(bundle_data_path(directory_ / "m", 0, 1), data);
  EXPECT_THROW(
      restore_checkpoint(directory_ / "m",
                         std::vector<RestoreTarget>{target_of("b", tensor_of<float>({1}, {0})), target_of("w", fresh)}),
      Corruption);
  EXPECT_EQ(fresh.to_vector<float>(), (std::vector<float>{0, 0}));
}

void save_some(CheckpointKeeper& keeper, const fs::path& directory, bool one_name, int round) {
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < 4; ++i) {
    Tensor tensor = patterned({20000}, f32);
    const HostWrite to(tensor);
    for (float& element : to.span<float>()) element = static_cast<float>(round);
    tensors.push_back({"w" + std::to_string(i), tensor});
  }
  keeper.save(directory / "model.ckpt", one_name ? std::optional<std::int64_t>() : round, tensors);
}

TEST_F(Checkpoint, OldOnesAreListedUntilTheyAreRemoved) {
  // What a keeper leaves that is killed before it removes the oldest: all are listed, so that the next one finds them.
  CheckpointKeeper all({.max_to_keep = 0});
  for (const int step : {1, 2, 3})
    all.save(directory_ / "m.ckpt", step, std::vector<NamedTensor>{{"w", patterned({2}, f32)}});
  CheckpointKeeper two({.max_to_keep = 2});
  two.recover(directory_);
  two.save(directory_ / "m.ckpt", 4, std::vector<NamedTensor>{{"w", patterned({2}, f32)}});
  EXPECT_THAT(names(), testing::ElementsAre("checkpoint", "m.ckpt-3.data-00000-of-00001", "m.ckpt-3.index",
                                            "m.ckpt-4.data-00000-of-00001", "m.ckpt-4.index"));
  EXPECT_THAT(read_checkpoint_state(directory_).all, testing::ElementsAre("m.ckpt-3", "m.ckpt-4"));
}

// A child saves in a loop, to one name or to many; the parent kills it at some instant and checks what is there.
void save_until_killed(const fs::path& directory, bool one_name, int first) {
  CheckpointKeeper keeper({.max_to_keep = 2});
  keeper.recover(directory);
  for (int round = first;; ++round) save_some(keeper, directory, one_name, round);
}

TEST_F(Checkpoint, IsAlwaysLoadableWhenKilled) {
  const char* wanted = std::getenv("PLIMSOLL_KILLS");
  const int kills = wanted ? std::atoi(wanted) : 50;
  const Stopwatch watch;
  CheckpointKeeper measured;
  for (int round = 0; round < 3; ++round) save_some(measured, directory_ / "measured", true, round);
  const double save_micros = watch.seconds() * 1e6 / 3;
  float last = 0;
  for (int kill_number = 0; kill_number < kills; ++kill_number) {
    const bool one_name = kill_number % 2 == 0;
    const fs::path directory = directory_ / (one_name ? "one" : "many");
    const pid_t child = fork();
    if (child == 0) {
      try {
        save_until_killed(directory, one_name, kill_number * 1000);
      } catch (...) {
      }
      _exit(1);
    }
    usleep(static_cast<useconds_t>(save_micros * ((kill_number * 7919) % 1000) * 0.003));  // Up to three saves.
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child failed by itself";
    const std::string latest = latest_checkpoint(directory);
    if (latest.empty()) {  // Only before the first was ever named.
      ASSERT_FALSE(fs::exists(directory / "checkpoint"));
      continue;
    }
    const BundleReader reader(latest);
    const float value = reader.read("w0").at<float>({0});
    for (const BundleEntry& entry : reader.entries())
      ASSERT_EQ(reader.read(entry.key).at<float>({19999}), value) << "of one save";
    last = std::max(last, value);
  }
  EXPECT_GT(last, 0.f) << "nothing was ever saved";
  RecordProperty("kills", kills);
  for (const char* name : {"one", "many"}) {  // The next save tidies up.
    CheckpointKeeper keeper({.max_to_keep = 2});
    keeper.recover(directory_ / name);
    keeper.save(directory_ / name / "model.ckpt", {}, std::vector<NamedTensor>{{"w", tensor_of<float>({1}, {1})}});
    for (const std::string& file : list_directory(directory_ / name)) {
      EXPECT_THAT(file, Not(HasSubstr(".tmp-")));
      const std::size_t data = file.find(".data-");
      EXPECT_TRUE(data == file.npos || fs::exists(directory_ / name / (file.substr(0, data) + ".index"))) << file;
    }
  }
}

}  // namespace
}  // namespace plimsoll
