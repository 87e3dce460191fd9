#include "plimsoll/observe/live/live_questions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/pages/host_page_source.h"
#include "plimsoll/memory/trace/trace_file.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/observe/live/live_testing.h"
#include "plimsoll/observe/live/live_view.h"

namespace plimsoll {
namespace {

using ::testing::HasSubstr;

class LiveQuestionsTest : public ::testing::Test {
 protected:
  std::string refused(const std::string& question) {
    try {
      return "answered " + ask_live_process(getpid(), question);
    } catch (const Error& error) {
      return error.what();
    }
  }
  int connected() const {
    const int made = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (folder.live() / (std::to_string(getpid()) + ".socket")).string().copy(address.sun_path, 107);
    EXPECT_EQ(connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    return made;
  }
  static std::string heard(int socket) {
    std::string all;
    char piece[4096];
    for (ssize_t count; (count = recv(socket, piece, sizeof(piece), 0)) > 0;)
      all.append(piece, static_cast<std::size_t>(count));
    return all;
  }

  OwnRuntimeFolder folder;
  HostPageSource pages;
  Arena arena{pages, {.name = "CPU:9", .limit = 64_MiB}};
  LiveView view{{.name = "asked"}};
};

TEST_F(LiveQuestionsTest, SayWhoHolds) {
  BlockLabel label;
  label.op = "matmul";
  label.scope = "dense";
  Chunk* const chunk = arena.take(3_MiB, label);
  const nlohmann::json answer = parse_json(ask_live_process(getpid(), "holders 3"));
  EXPECT_EQ(answer["holders"][0]["op"], "matmul");
  EXPECT_EQ(answer["holders"][0]["scope"], "dense");
  EXPECT_EQ(answer["holders"][0]["bytes"], 3_MiB);
  arena.give(chunk);
}

TEST_F(LiveQuestionsTest, Trim) {
  arena.give(arena.take(8_MiB, {}));
  std::memset(arena.base(), 1, 4096);
  const nlohmann::json answer = parse_json(ask_live_process(getpid(), "trim"));
  EXPECT_GE(answer["freed_bytes"], 8_MiB);
}

TEST_F(LiveQuestionsTest, RecordATrace) {
  const std::string path = folder.path() / "now.trace";
  BlockLabel label;
  Chunk* const chunk = arena.take(1_MiB, label);
  const nlohmann::json answer = parse_json(ask_live_process(getpid(), "record " + path + " 0.05"));
  EXPECT_GE(answer["events"], 1);
  const TraceFile trace = read_trace_file(path);
  EXPECT_TRUE(trace.complete);
  EXPECT_FALSE(trace.events.empty());
  arena.give(chunk);
  EXPECT_THAT(refused("record " + path + " 0"), HasSubstr("exists already"));
  EXPECT_THAT(refused("record relative 0"), HasSubstr("is not an absolute path"));
  EXPECT_THAT(refused("record " + path + "2 -1"), HasSubstr("unknown question"));
  const TraceRecorder busy({.path = folder.path() / "busy.trace"});
  EXPECT_THAT(refused("record " + path + "3 0"), HasSubstr("is being recorded"));
}

TEST_F(LiveQuestionsTest, AFollowedTraceGrowsWhileItIsRecorded) {
  const std::string path = folder.path() / "followed.trace";
  std::size_t before = 0, after = 0;
  {
    const FollowedProcess followed(getpid(), path);
    EXPECT_THAT(refused("follow " + path + "2"), HasSubstr("somebody records"));
    const auto events = [&] { return read_trace_file(path + ".partial").events.size(); };
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    before = events();
    for (int i = 0; i < 10; ++i) arena.give(arena.take(64_KiB, {}));
    for (int i = 0; i < 40 && after <= before; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      after = events();
    }
    EXPECT_TRUE(followed.is_alive());
  }
  EXPECT_GE(after, before + 20);
  for (int i = 0; i < 200 && !std::filesystem::exists(path); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(trace_is_recording());
  EXPECT_TRUE(read_trace_file(path).complete);
}

TEST_F(LiveQuestionsTest, FlushWhatIsBeingRecorded) {
  EXPECT_EQ(ask_live_process(getpid(), "flush"), "{\"recording\":null}");
  const std::string path = folder.path() / "own.trace";
  const TraceRecorder recorder({.path = path});
  for (int i = 0; i < 10; ++i) arena.give(arena.take(64_KiB, {}));
  EXPECT_EQ(parse_json(ask_live_process(getpid(), "flush"))["recording"], path);
  EXPECT_GE(read_trace_file(path + ".partial").events.size(), 20u);
}

TEST_F(LiveQuestionsTest, RefuseWhatTheyDoNotUnderstand) {
  EXPECT_THAT(refused("dance"), HasSubstr("unknown question"));
  EXPECT_THAT(refused(""), HasSubstr("unknown question"));
  EXPECT_THAT(refused("holders many"), HasSubstr("unknown question"));
  EXPECT_THAT(refused("two\nlines"), HasSubstr("one line"));
  EXPECT_THROW(ask_live_process(1, "trim"), NotFound);
  const int flood = connected();
  const std::string bytes(100'000, 'x');
  static_cast<void>(send(flood, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  EXPECT_THAT(heard(flood), ::testing::AnyOf(HasSubstr("too long or too slow"), ::testing::IsEmpty()));
  close(flood);
  EXPECT_THAT(ask_live_process(getpid(), "trim"), HasSubstr("freed_bytes"));
}

TEST_F(LiveQuestionsTest, ASlowAskerDelaysOthersOnlyBriefly) {
  const int slow = connected();
  EXPECT_THAT(ask_live_process(getpid(), "trim"), HasSubstr("freed_bytes"));
  EXPECT_THAT(heard(slow), HasSubstr("too long or too slow"));
  close(slow);
}

TEST_F(LiveQuestionsTest, RefuseAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  chmod(folder.path().c_str(), 0755);  // The folders alone would keep them out.
  chmod(folder.live().c_str(), 0755);
  const std::filesystem::path path = folder.live() / (std::to_string(getpid()) + ".socket");
  chmod(path.c_str(), 0666);
  int said[2];
  ASSERT_EQ(pipe(said), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
    const int made = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, 107);
    if (connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) _exit(2);
    char answer[200];
    const ssize_t count = recv(made, answer, sizeof(answer), 0);
    static_cast<void>(write(said[1], answer, count > 0 ? static_cast<std::size_t>(count) : 0));
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  close(said[1]);
  char answer[200] = "";
  static_cast<void>(read(said[0], answer, sizeof(answer) - 1));
  close(said[0]);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_STREQ(answer, "{\"error\":\"this process belongs to another user\"}\n");
}

}  // namespace
}  // namespace plimsoll
