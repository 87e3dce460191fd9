#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/cli/cli_testing.h"
#include "plimsoll/cli/live/serve_source.h"
#include "plimsoll/cli/live/serve_token.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/observe/live/live_testing.h"
#include "plimsoll/observe/live/live_view.h"
#include "plimsoll/ops/creation.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

template <class Done>
bool becomes(Done&& done) {
  for (int i = 0; i < 100; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

TEST(ServeSource, FollowsAFileThatGrows) {
  const OwnRuntimeFolder folder;
  const std::string path = folder.path() / "run.trace";
  TraceRecorder recorder({.path = path});
  Tensor tensor = ones({1000});
  recorder.flush();
  ServeSource source(path);
  EXPECT_TRUE(source.is_growing());
  ASSERT_TRUE(source.data());
  EXPECT_THAT(source.metrics(), HasSubstr("plimsoll_used_bytes{device=\"CPU:0\"}"));
  const std::string before = source.version();
  tensor = ones({2000});
  recorder.flush();
  EXPECT_TRUE(becomes([&] {
    source.refresh();
    return source.version() != before;
  }));
  recorder.finish();
  EXPECT_TRUE(becomes([&] {
    source.refresh();
    return !source.is_growing();
  }));
}

TEST(ServeSource, AProcessRecordsForIt) {
  const OwnRuntimeFolder folder;
  const LiveView view({.name = "followed", .every = std::chrono::milliseconds(50)});
  {
    ServeSource source("");
    EXPECT_TRUE(trace_is_recording());
    EXPECT_THAT(source.title(), HasSubstr("followed ("));
    const Tensor tensor = ones({1000});
    EXPECT_TRUE(becomes([&] {
      source.refresh();
      return source.data() != nullptr;
    }));
    EXPECT_THAT(source.metrics(), HasSubstr("plimsoll_process_info{name=\"followed\""));
  }
  EXPECT_TRUE(becomes([] { return !trace_is_recording(); }));
}

TEST(ServeSource, AProcessThatRecordsIsFollowedInItsFile) {
  const OwnRuntimeFolder folder;
  LiveView view({.name = "recording"});
  view.publish();
  const TraceRecorder recorder({.path = folder.path() / "own.trace"});
  Tensor tensor = ones({1000});
  ServeSource source(std::to_string(getpid()));
  ASSERT_TRUE(source.data());
  const std::string before = source.version();
  tensor = ones({2000});
  EXPECT_TRUE(becomes([&] {
    source.refresh();
    return source.version() != before;
  }));
}

TEST(ServeSource, SaysWhatIsMissing) {
  const OwnRuntimeFolder folder;
  EXPECT_THROW(ServeSource(""), NotFound);
  EXPECT_THROW(ServeSource("4000000"), NotFound);
  EXPECT_THROW(ServeSource(folder.path() / "no.trace"), NotFound);
  std::ofstream(folder.path() / "text.trace") << "this is not a trace, but text that is long enough";
  EXPECT_THROW(ServeSource(folder.path() / "text.trace"), Corruption);
}

TEST(ServeToken, IsKeptInAFileOfTheUser) {
  const OwnRuntimeFolder folder;
  const std::string path = folder.path() / "token";
  EXPECT_NE(serve_token(""), serve_token(""));
  const std::string token = serve_token(path);
  EXPECT_EQ(serve_token(path), token);
  struct stat status {};
  stat(path.c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  chmod(path.c_str(), 0644);
  EXPECT_THROW(serve_token(path), FailedPrecondition);
  chmod(path.c_str(), 0600);
  std::ofstream(path) << "short\n";
  EXPECT_THROW(serve_token(path), InvalidArgument);
  std::ofstream(path) << "a long text with spaces in it";
  EXPECT_THROW(serve_token(path), InvalidArgument);
}

TEST(ServeCommand, RefusesPortsThatAreNone) {
  EXPECT_EQ(run_cli({"serve", "run.trace", "--port", "70000"}).code, 2);
  EXPECT_EQ(run_cli({"serve", "no_such.trace"}).code, 1);
}

}  // namespace
}  // namespace plimsoll
