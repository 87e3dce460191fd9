#include "plimsoll/memory/spill/open_spill_file.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>

#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/memory/spill/spill_testing.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

// Keeps what is logged meanwhile.
class KeptLog {
 public:
  KeptLog() : before_(set_log_sink([this](LogLevel, std::string_view text) { text_ += text; })) {}
  ~KeptLog() { set_log_sink(before_); }
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  LogSink before_;
};

struct Closer {
  OpenedSpill opened;
  ~Closer() { close(opened.file); }
};

TEST(OpenSpillFile, HasNoNameAndIsForItsOwnerOnly) {
  const SpillFolder folder;
  FaultyIo io;
  const Closer made{open_spill_file(io, folder.path())};
  EXPECT_TRUE(folder.is_empty());
  struct stat found {};
  ASSERT_EQ(fstat(made.opened.file, &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
  EXPECT_EQ(found.st_nlink, 0u);
  EXPECT_NE(fcntl(made.opened.file, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(io.calls(FaultyIo::kUnlink), 0u);
}

TEST(OpenSpillFile, RemovesTheNameAtOnceWhereFilesMustHaveOne) {
  for (const int error : {EOPNOTSUPP, EISDIR, ENOENT}) {
    const SpillFolder folder;
    FaultyIo io;
    io.fail_open_with(O_TMPFILE, error);
    io.fail(FaultyIo::kOpen, 1, {.error_number = EEXIST});  // What another process of our number left.
    const Closer made{open_spill_file(io, folder.path())};
    EXPECT_EQ(io.calls(FaultyIo::kUnlink), 1u);
    EXPECT_TRUE(folder.is_empty());
    struct stat found {};
    ASSERT_EQ(fstat(made.opened.file, &found), 0);
    EXPECT_EQ(found.st_mode & 07777, 0600u);
  }
}

TEST(OpenSpillFile, SaysThatTheNameCouldNotBeRemoved) {
  const SpillFolder folder;
  FaultyIo io;
  io.fail_open_with(O_TMPFILE, EOPNOTSUPP);
  io.fail(FaultyIo::kUnlink, 0, {.error_number = EACCES});
  EXPECT_THAT(text_of<Error>([&] { open_spill_file(io, folder.path()); }), HasSubstr("cannot remove the name"));
}

TEST(OpenSpillFile, UsesThePageCacheWithAWarningWhereThereIsNoDirectIo) {
  const SpillFolder folder;
  FaultyIo io;
  io.fail_open_with(O_DIRECT, EINVAL);
  const KeptLog log;
  const Closer made{open_spill_file(io, folder.path())};
  EXPECT_FALSE(made.opened.is_direct);
  EXPECT_EQ(made.opened.address_alignment, 1u);
  EXPECT_THAT(log.text(), HasSubstr("has no direct I/O"));
}

TEST(OpenSpillFile, TakesTheAlignmentThatTheSystemSays) {
  const SpillFolder folder;
  FaultyIo io;
  for (const auto& [said, used] :
       std::map<std::size_t, std::size_t>{{4, 4}, {512, 512}, {4096, 4096}, {65536, 4096}, {7, 4096}}) {
    io.alignment = said;
    const Closer made{open_spill_file(io, folder.path())};
    if (!made.opened.is_direct) GTEST_SKIP() << "the file system here has no direct I/O";
    EXPECT_EQ(made.opened.address_alignment, used) << said;
  }
}

TEST(OpenSpillFile, RefusesMemory) {
  const SpillFolder folder;
  for (const auto& [type, name] : std::map<std::uint64_t, std::string>{
           {TMPFS_MAGIC, "tmpfs"}, {RAMFS_MAGIC, "ramfs"}, {HUGETLBFS_MAGIC, "hugetlbfs"}}) {
    FaultyIo io;
    io.file_system_type = type;
    EXPECT_THAT(text_of<InvalidArgument>([&] { open_spill_file(io, folder.path()); }),
                testing::AllOf(HasSubstr("kept in memory (" + name + ")"), HasSubstr(folder.path().string())));
  }
}

TEST(OpenSpillFile, RefusesTheMemoryOfThisSystem) {
  SpillIo::FileSystem facts;
  const int shared = open("/dev/shm", O_PATH | O_CLOEXEC);
  const bool is_memory = shared >= 0 && SpillIo::system().file_system(shared, facts) == 0 && facts.type == TMPFS_MAGIC;
  if (shared >= 0) close(shared);
  if (!is_memory) GTEST_SKIP() << "/dev/shm is not a tmpfs here";
  EXPECT_THAT(text_of<InvalidArgument>([&] { SpillFile({.directory = "/dev/shm"}); }), HasSubstr("tmpfs"));
}

TEST(OpenSpillFile, RefusesWhatIsNotThereIsNotADirectoryOrWasNotNamed) {
  const SpillFolder folder;
  EXPECT_THAT(text_of<NotFound>([&] { SpillFile({.directory = folder.path() / "absent"}); }), HasSubstr("absent"));
  std::ofstream(folder.path() / "file") << "x";
  EXPECT_THAT(text_of<InvalidArgument>([&] { SpillFile({.directory = folder.path() / "file"}); }),
              HasSubstr("not a directory"));
  EXPECT_THAT(text_of<InvalidArgument>([&] { SpillFile({}); }), HasSubstr("no directory was named"));
}

TEST(OpenSpillFile, SaysWhyADirectoryCannotBeUsed) {
  const SpillFolder folder;
  for (const int error : {EROFS, EACCES, EMFILE, ENOSPC}) {
    FaultyIo io;
    io.fail_open_with(O_TMPFILE, error);
    EXPECT_THAT(text_of<Error>([&] { open_spill_file(io, folder.path()); }),
                testing::AllOf(HasSubstr("cannot create a file in"), HasSubstr(fmt::format("errno {}", error))));
  }
  FaultyIo nothing_works;
  nothing_works.fail_open_with(O_RDWR, EINVAL);
  EXPECT_THAT(text_of<Error>([&] { open_spill_file(nothing_works, folder.path()); }), HasSubstr("errno 22"));
}

TEST(OpenSpillFile, RefusesADirectoryThatIsReadOnly) {
  const SpillFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  const pid_t child = fork();  // Permissions do not hold for root.
  if (child == 0) {
    alarm(20);
    if (geteuid() == 0 && setuid(65534) != 0) _exit(3);
    try {
      FaultyIo io;
      SpillFile file({.directory = folder.path(), .io = &io});
      _exit(1);
    } catch (const Error& error) {
      _exit(std::string(error.what()).find("errno 13") != std::string::npos ? 0 : 2);
    }
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 3) GTEST_SKIP() << "cannot become another user";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: opened, 2: another error";
}

}  // namespace
}  // namespace plimsoll
