#include "plimsoll/observe/live/live_view.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/pages/host_page_source.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/observe/live/live_file.h"
#include "plimsoll/observe/live/live_testing.h"

namespace plimsoll {
namespace {

using ::testing::HasSubstr;

unsigned mode_of(const std::filesystem::path& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
}

// A child that runs `work` and then waits to be killed; made when it has said so.
class Child {
 public:
  explicit Child(const std::function<void()>& work) {
    int said[2];
    if (pipe(said) != 0) throw Error("pipe");
    process_ = fork();
    if (process_ == 0) {
      int code = 1;
      try {
        work();
        code = 0;
      } catch (const std::exception& error) {
        std::fprintf(stderr, "child: %s\n", error.what());
      }
      static_cast<void>(write(said[1], &code, 1));
      for (;;) pause();
    }
    char heard = 1;
    close(said[1]);
    EXPECT_EQ(read(said[0], &heard, 1), 1);
    EXPECT_EQ(heard, 0);
    close(said[0]);
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t process() const { return process_; }
  void end() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_ = -1;
};

TEST(LiveView, PublishesWhatArenasAndBudgetsHold) {
  const OwnRuntimeFolder folder;
  HostPageSource pages;
  Arena arena(pages, {.name = "CPU:7", .limit = 64_MiB});
  const Budget process("live process", 32_MiB), model("live model", 8_MiB, process);
  BlockLabel label;
  label.op = "conv";
  label.scope = "net/first";
  label.category = Category::kActivations;
  Chunk* chunk = nullptr;
  {
    const BudgetScope inside(model);
    chunk = arena.take(1_MiB, label);
  }
  trace_step(41);
  LiveView view({.name = "trainer", .every = std::chrono::hours(1)});
  view.publish();
  const auto found = read_live_process(getpid());
  ASSERT_TRUE(found);
  EXPECT_EQ(text_of(found->name), "trainer");
  EXPECT_EQ(found->step, 41u);
  EXPECT_GT(found->resident, 0u);
  ASSERT_GE(found->num_devices, 1u);
  const LiveDevice& device = found->devices[found->num_devices - 1];
  EXPECT_EQ(text_of(device.name), "CPU:7");
  EXPECT_EQ(device.used, 1_MiB);
  EXPECT_EQ(device.limit, 64_MiB);
  const auto* const budgets = found->budgets;
  const auto* const own = std::find_if(budgets, budgets + found->num_budgets,
                                       [](const LiveBudget& budget) { return text_of(budget.name) == "live model"; });
  ASSERT_NE(own, budgets + found->num_budgets);
  EXPECT_EQ(own->used, 1_MiB);
  EXPECT_EQ(text_of(budgets[own->parent].name), "live process");
  EXPECT_EQ(nearest_limit(*found).name, "budget live model");
  EXPECT_EQ(text_of(found->holders[0].op), "conv");
  EXPECT_EQ(text_of(found->holders[0].scope), "net/first");
  EXPECT_GE(found->by_category[static_cast<std::size_t>(Category::kActivations)], 1_MiB);
  EXPECT_THAT(live_json(*found), HasSubstr("\"top_category\": \"activations\""));
  EXPECT_THAT(metrics_text(*found),
              HasSubstr("plimsoll_budget_used_bytes{budget=\"live model\",parent=\"live process\"} 1048576\n"));
  arena.give(chunk);
}

TEST(LiveView, OnlyTheUserCanReadIt) {
  const OwnRuntimeFolder folder;
  {
    const LiveView view;
    const std::string name = std::to_string(getpid());
    EXPECT_EQ(view.file(), folder.live() / name);
    EXPECT_EQ(mode_of(folder.live()), 0700u);
    EXPECT_EQ(mode_of(folder.live() / name), 0600u);
    EXPECT_EQ(mode_of(folder.live() / (name + ".socket")), 0600u);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.live()));
}

TEST(LiveView, RefusesPlacesThatAreNotTheUsers) {
  const OwnRuntimeFolder folder;
  std::filesystem::create_directory_symlink("/tmp", folder.live());
  EXPECT_THROW(LiveView(), Error);
  EXPECT_THROW(read_live_processes(), Error);
  std::filesystem::remove(folder.live());
  EXPECT_THAT(read_live_processes(), ::testing::IsEmpty());
  if (geteuid() == 0) {
    std::filesystem::create_directory(folder.live());
    ASSERT_EQ(chown(folder.live().c_str(), 65534, 65534), 0);
    EXPECT_THROW(LiveView(), FailedPrecondition);
    EXPECT_THROW(read_live_processes(), FailedPrecondition);
  }
  unsetenv("XDG_RUNTIME_DIR");
  EXPECT_THROW(LiveView(), FailedPrecondition);
  setenv("XDG_RUNTIME_DIR", "relative", 1);
  EXPECT_THROW(LiveView(), FailedPrecondition);
}

TEST(LiveView, IsOneForEachProcess) {
  const OwnRuntimeFolder folder;
  const LiveView view;
  EXPECT_THROW(LiveView(), FailedPrecondition);
  EXPECT_THROW(LiveView({.every = std::chrono::milliseconds(1)}), InvalidArgument);
  EXPECT_EQ(read_live_processes().size(), 1u);
}

TEST(LiveView, TheEnvironmentAsksForOneAndTheProgramReplacesIt) {
  const OwnRuntimeFolder folder;
  start_live_view_from_environment();
  EXPECT_THAT(read_live_processes(), ::testing::IsEmpty());
  setenv("PLIMSOLL_LIVE", "1", 1);
  start_live_view_from_environment();
  unsetenv("PLIMSOLL_LIVE");
  EXPECT_EQ(read_live_processes().size(), 1u);
  {
    LiveView view({.name = "mine"});
    view.publish();
    EXPECT_EQ(text_of(read_live_process(getpid())->name), "mine");
  }
  EXPECT_THAT(read_live_processes(), ::testing::IsEmpty());
}

TEST(LiveView, AKilledProcessLeavesNoRow) {
  const OwnRuntimeFolder folder;
  Child child([] { new LiveView({.name = "child"}); });
  const pid_t process = child.process();
  ASSERT_TRUE(read_live_process(process));
  child.end();
  EXPECT_TRUE(std::filesystem::exists(folder.live() / std::to_string(process)));
  EXPECT_THAT(read_live_processes(), ::testing::IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder.live()));
}

TEST(LiveView, AForkedChildDoesNotKeepItsParentsRow) {
  const OwnRuntimeFolder folder;
  int grandchild[2];
  ASSERT_EQ(pipe(grandchild), 0);
  pid_t forked = -1;
  {
    Child child([&] {
      new LiveView;
      const pid_t made = fork();
      if (made == 0)
        for (;;) pause();
      static_cast<void>(write(grandchild[1], &made, sizeof(made)));
    });
    ASSERT_EQ(read(grandchild[0], &forked, sizeof(forked)), static_cast<ssize_t>(sizeof(forked)));
    EXPECT_EQ(read_live_processes().size(), 1u);
  }
  EXPECT_EQ(::kill(forked, 0), 0);
  for (int i = 0; i < 500 && !read_live_processes().empty(); ++i)  // It lets go as soon as it runs.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_THAT(read_live_processes(), ::testing::IsEmpty());
  ::kill(forked, SIGKILL);
  close(grandchild[0]);
  close(grandchild[1]);
}

TEST(LiveFile, ReadersNeverSeeHalfOfAPublication) {
  const OwnRuntimeFolder folder;
  LiveFile file;
  std::atomic<bool> ends{false};
  std::thread writer([&] {
    LiveCounters counters;
    counters.process = static_cast<std::uint32_t>(getpid());
    while (!ends) {
      ++counters.step;
      counters.publications = counters.holders[LiveCounters::kHolders - 1].blocks = counters.step;
      file.publish(counters);
    }
  });
  std::size_t read = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto found = read_live_process(getpid());
    if (!found) continue;  // It was changed each time.
    ++read;
    EXPECT_EQ(found->step, found->publications);
    EXPECT_EQ(found->step, found->holders[LiveCounters::kHolders - 1].blocks);
  }
  ends = true;
  writer.join();
  EXPECT_GT(read, 0u);
}

TEST(LiveFile, DamagedFilesAreNotShown) {
  const OwnRuntimeFolder folder;
  LiveFile own;
  std::string whole;
  {
    std::ifstream in(own.path(), std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  const auto shown = [&](const std::string& bytes) {
    const std::filesystem::path path = folder.live() / "4000000";
    std::ofstream(path, std::ios::binary) << bytes;
    chmod(path.c_str(), 0600);
    const int file = open(path.c_str(), O_RDONLY);
    flock(file, LOCK_EX | LOCK_NB);  // As if it lived.
    const bool found = read_live_process(4000000).has_value();
    close(file);
    return found;
  };
  EXPECT_FALSE(shown(""));
  EXPECT_FALSE(shown(whole.substr(0, 100)));
  EXPECT_FALSE(shown(whole));  // Of another process.
  std::string changed = whole;
  changed[200] ^= 1;
  EXPECT_FALSE(shown(changed));
  changed = whole;
  changed[8] ^= 1;  // The version.
  EXPECT_FALSE(shown(changed));
  std::filesystem::create_symlink(own.path(), folder.live() / "4000001");
  EXPECT_FALSE(read_live_process(4000001));
  LiveCounters counters;
  counters.num_budgets = 65;
  EXPECT_FALSE(is_sound(counters));
  counters = {};
  std::fill_n(counters.name, sizeof(counters.name), 'x');
  EXPECT_FALSE(is_sound(counters));
}

TEST(LiveCounters, NamesCannotCommandATerminal) {
  EXPECT_EQ(text_of("a\033[2J\nb"), "a?[2J?b");
  EXPECT_EQ(text_of("caf\xc3\xa9 \xc2\x9b"), "caf\xc3\xa9 ?");
  LiveCounters counters;
  set_text(counters.name, "quo\"te\\");
  EXPECT_THAT(metrics_text(counters), HasSubstr("{name=\"quo\\\"te\\\\\",pid=\"0\"} 1\n"));
}

}  // namespace
}  // namespace plimsoll
