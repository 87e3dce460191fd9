#include "plimsoll/base/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "plimsoll/base/error.h"
#include "plimsoll/base/file_size_limit_testing.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

// Each test gets its own directory, removed afterwards.
class AtomicFileTest : public testing::Test {
 protected:
  AtomicFileTest() {
    std::string pattern = (fs::temp_directory_path() / "atomic_file_XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }
  ~AtomicFileTest() override { fs::remove_all(directory_); }

  std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory_), {})); }
  void put(const fs::path& path, std::string_view text) { std::ofstream(path) << text; }
  fs::path directory_;
};

TEST_F(AtomicFileTest, AppearsOnlyWhenCommitted) {
  const fs::path path = directory_ / "a";
  AtomicFile file(path);
  file.write("hello ");
  file.write("world");
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(file.bytes_written(), 11u);
  file.commit();
  EXPECT_EQ(read_file(path, 100), "hello world");
  EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFileTest, LeavesTheOldFileWhenAbandoned) {
  const fs::path path = directory_ / "a";
  put(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
  }
  EXPECT_EQ(read_file(path, 100), "old");
  EXPECT_EQ(files(), 1u) << "the temporary is gone";
}

TEST_F(AtomicFileTest, WritesLargeAndSmallPiecesInOrder) {
  AtomicFile file(directory_ / "a");
  std::string expected;
  for (const std::size_t size : {1u, 65535u, 1u, 65536u, 200000u, 7u, 0u, 65530u}) {
    const std::string piece(size, static_cast<char>('a' + expected.size() % 26));
    file.write(piece);
    expected += piece;
  }
  file.commit();
  EXPECT_TRUE(read_file(directory_ / "a", 1 << 20) == expected);
}

TEST_F(AtomicFileTest, KeepsPermissionsAndFollowsLinks) {
  const fs::path path = directory_ / "a", link = directory_ / "link";
  put(path, "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("a", link);
  AtomicFile file(link);
  file.write("new");
  file.commit();
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_file(path, 100), "new");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(AtomicFileTest, RefusesUseAfterCommit) {
  AtomicFile file(directory_ / "a");
  file.commit();
  EXPECT_THROW(file.write("x"), FailedPrecondition);
  EXPECT_THROW(file.commit(), FailedPrecondition);
  EXPECT_EQ(read_file(directory_ / "a", 0), "");
}

TEST_F(AtomicFileTest, NamesThePathAndTheReason) {
  try {
    AtomicFile file(directory_ / "missing" / "a");
    FAIL() << "nothing thrown";
  } catch (const NotFound& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("missing/a\": cannot create: no such file or directory (errno 2)"));
  }
  EXPECT_THROW(AtomicFile file(directory_), Error);
  EXPECT_THROW(AtomicFile file(""), Error);
}

TEST_F(AtomicFileTest, AsksTheUserToDownloadAUrl) {
  const auto message_for = [](const char* path) -> std::string {
    try {
      return read_file(path, 100);
    } catch (const NotFound& error) {
      return error.what();
    }
  };
  EXPECT_THAT(message_for("https://example.org/model.json"),
              testing::HasSubstr("only local files are read: download it first"));
  EXPECT_THAT(message_for("gs://bucket/x"), testing::HasSubstr("it is a URL"));
  EXPECT_THAT(message_for("no/such:/file"), testing::Not(testing::HasSubstr("URL")));
}

TEST_F(AtomicFileTest, RemovesTheTemporaryWhenTheDiskRefuses) {
  const fs::path path = directory_ / "a";
  put(path, "old");
  AtomicFile file(path);
  try {
    const FileSizeLimit full(4096);
    file.write(std::string(1 << 20, 'x'));
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("/a\": cannot write 1044480 bytes after the first 4096: file too large (errno 27)"));
  }
  EXPECT_THROW(file.commit(), FailedPrecondition);
  EXPECT_EQ(read_file(path, 100), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFileTest, RemovesWhatKilledProcessesLeftAndNothingElse) {
  AtomicFile living(directory_ / "model.index");
  put(directory_ / "model.index.tmp-1-0", "left behind");
  put(directory_ / "model.data.tmp-4711-12", "left behind");
  for (const char* kept : {"other.tmp-1-0", "model.tmp-", "model.tmp-1-", "model.tmp-x-1", "model.index"})
    put(directory_ / kept, "kept");
  EXPECT_EQ(remove_stale_temporaries(directory_, "model."), 2u);
  EXPECT_EQ(files(), 6u);
  living.write("whole");
  living.commit();
  EXPECT_EQ(read_file(directory_ / "model.index", 100), "whole");
  EXPECT_EQ(remove_stale_temporaries(directory_ / "missing", ""), 0u);
}

TEST_F(AtomicFileTest, IsNotStoppedByTemporariesOfItsOwnName) {
  for (int count = 0; count < 50; ++count)  // Whatever the counter is, some of these come next.
    put(directory_ / ("a.tmp-" + std::to_string(getpid()) + "-" + std::to_string(count)), "left behind");
  AtomicFile file(directory_ / "a");
  file.write("new");
  file.commit();
  EXPECT_EQ(read_file(directory_ / "a", 100), "new");
}

TEST_F(AtomicFileTest, WritesIntoAPipeAndLeavesItThere) {
  const fs::path pipe = directory_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  {
    AtomicFile file(pipe);
    file.write("through");
    file.commit();
    AtomicFile given_up(pipe);
  }
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(files(), 1u);
  char text[20] = "";
  EXPECT_EQ(read(reader, text, sizeof(text)), 7);
  EXPECT_STREQ(text, "through");
  close(reader);
}

TEST_F(AtomicFileTest, ReadsUpToABound) {
  put(directory_ / "a", std::string(10000, 'x'));
  EXPECT_EQ(read_file(directory_ / "a", 10000).size(), 10000u);
  EXPECT_EQ(read_file(directory_ / "a", SIZE_MAX - 1).size(), 10000u);
  EXPECT_THROW(read_file(directory_ / "a", 9999), InvalidArgument);
  EXPECT_THROW(read_file("/dev/zero", 100), InvalidArgument);
  EXPECT_THROW(read_file(directory_ / "b", 100), NotFound);
  EXPECT_THROW(read_file(directory_, 100), Error);
}

}  // namespace
}  // namespace plimsoll
