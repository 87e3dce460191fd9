// Every system call of a transfer fails once, in every way: errors surface, nothing is lost, nothing hangs.
#include <thread>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/memory/spill/spill_testing.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

std::size_t threads_of_process() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

// Aligned with a last part and two pieces; staged in two; small.
struct Range {
  std::size_t bytes, shift;
};
constexpr Range kRanges[] = {{4_MiB + 12'288 + 100, 0}, {1_MiB + 5000, 1}, {100, 3}};

// Stores and loads three ranges; what fails is tried again. Gives the errors' texts.
std::vector<std::string> store_and_load(SpillFile& file) {
  std::vector<std::string> errors;
  const auto with_retry = [&](auto&& work) {
    try {
      work();
    } catch (const Error& error) {
      errors.emplace_back(error.what());
      work();
    }
  };
  std::uint32_t seed = 1;
  for (const Range& range : kRanges) {
    const PatternMemory source(range.bytes, seed, range.shift), same(range.bytes, seed, range.shift);
    const PatternMemory target(range.bytes, 99, range.shift);
    ++seed;
    SpillSlot slot;
    with_retry([&] { slot = file.reserve(range.bytes); });
    with_retry([&] {
      slot.store(source.span());
      EXPECT_EQ(slot.stored_bytes(), 0u);
      slot.wait();
    });
    EXPECT_TRUE(source == same) << "the source is never changed";
    EXPECT_EQ(slot.stored_bytes(), range.bytes);
    with_retry([&] {
      slot.load(target.span());
      slot.wait();
    });
    EXPECT_TRUE(target == source);
  }
  EXPECT_EQ(file.stats().reserved_bytes, 0u);
  return errors;
}

struct Case {
  FaultyIo::Call call;
  FaultyIo::Fault fault;
  std::string says;  // "": no error, the call is repeated or continued.
};

TEST(SpillFault, SurfacesOnceAndLosesNothingAtEveryCall) {
  const SpillFolder folder;
  const PatternMemory staging(SpillFile::staging_bytes(), 0);
  std::thread([] {}).join();  // With the first thread a sanitizer starts one of its own.
  const std::size_t threads = threads_of_process();
  const Case cases[] = {
      {FaultyIo::kAllocate, {.error_number = ENOSPC}, "errno 28"},
      {FaultyIo::kAllocate, {.error_number = EDQUOT}, "errno 122"},
      {FaultyIo::kAllocate, {.error_number = EIO}, "errno 5"},
      {FaultyIo::kAllocate, {.error_number = EINTR}, ""},
      {FaultyIo::kWrite, {.error_number = ENOSPC}, "errno 28"},
      {FaultyIo::kWrite, {.error_number = EIO}, "errno 5"},
      {FaultyIo::kWrite, {.error_number = EINTR}, ""},
      {FaultyIo::kWrite, {.most_bytes = 1}, ""},
      {FaultyIo::kWrite, {.most_bytes = 9000}, ""},
      {FaultyIo::kRead, {.error_number = EIO}, "errno 5"},
      {FaultyIo::kRead, {.error_number = EINTR}, ""},
      {FaultyIo::kRead, {.most_bytes = 1}, ""},
      {FaultyIo::kRead, {.most_bytes = 9000}, ""},
      {FaultyIo::kRead, {.corrupts = true}, ""},  // In the padding of a last part: not seen, and not ours.
  };
  std::size_t runs = 0;
  for (const Case& tried : cases) {
    for (std::size_t number = 0;; ++number, ++runs) {
      FaultyIo io;
      io.alignment = kSpillAlignment;
      io.fail(tried.call, number, tried.fault);
      SpillFile file({.directory = folder.path(), .staging = staging.span(), .io = &io});
      const std::vector<std::string> errors = store_and_load(file);
      if (io.calls(tried.call) <= number) break;  // There was no such call.
      ASSERT_LE(errors.size(), 1u);
      if (tried.fault.corrupts) continue;
      ASSERT_EQ(errors.size(), tried.says.empty() ? 0u : 1u) << "call " << number;
      if (!errors.empty()) {
        EXPECT_THAT(errors[0], testing::AllOf(HasSubstr(tried.says), HasSubstr(folder.path().string())));
        EXPECT_TRUE(errors[0].find("offset") != std::string::npos || tried.call == FaultyIo::kAllocate);
      }
    }
  }
  EXPECT_GT(runs, 60u);
  // The system removes a thread some time after it was joined.
  for (int look = 0; look < 2000 && threads_of_process() > threads; ++look) usleep(1000);
  EXPECT_LE(threads_of_process(), threads) << "every file's thread has ended";
  EXPECT_TRUE(folder.is_empty());
}

TEST(SpillFault, FindsBytesThatChangedOnTheWay) {
  const SpillFolder folder;
  const PatternMemory staging(SpillFile::staging_bytes(), 0);
  for (const std::size_t shift : {0u, 1u}) {
    FaultyIo io;
    io.fail(FaultyIo::kWrite, 1, {.corrupts = true});
    io.fail(FaultyIo::kRead, 2, {.corrupts = true});
    SpillFile file({.directory = folder.path(), .staging = staging.span(), .io = &io});
    const PatternMemory source(409'600, 1, shift), target(409'600, 2, shift);
    SpillSlot first = file.reserve(409'600), slot = file.reserve(409'600);
    first.store(source.span());
    slot.store(source.span());
    slot.load(target.span());
    const std::string text = text_of<Corruption>([&] { slot.wait(); });
    EXPECT_THAT(text, testing::AllOf(HasSubstr("409600 bytes at offset 409600"), HasSubstr("checksum")));
    slot.load(target.span());
    EXPECT_THROW(slot.wait(), Corruption) << "it was stored so";
    first.load(target.span());
    EXPECT_THROW(first.wait(), Corruption) << "it was read so";
    first.load(target.span());
    first.wait();
    EXPECT_TRUE(target == source) << "the second time it was read well";
  }
}

TEST(SpillFault, ReportsAStoreThatFailedAtTheNextUseOfItsSlot) {
  const SpillFolder folder;
  FaultyIo io;
  io.fail(FaultyIo::kWrite, 1, {.error_number = ENOSPC});
  io.fail(FaultyIo::kWrite, 2, {.error_number = ENOSPC});
  SpillFile file({.directory = folder.path(), .io = &io});
  const PatternMemory source(8192, 1), target(8192, 2);
  SpillSlot slot = file.reserve(8192);
  slot.store(source.span());
  slot.wait();
  slot.store(source.span());
  EXPECT_THROW(slot.load(target.span()), OutOfMemory);
  EXPECT_THROW(slot.load(target.span()), FailedPrecondition) << "what was stored before is lost";
  slot.store(source.span());
  EXPECT_THROW(slot.store(source.span()), OutOfMemory);
  EXPECT_NO_THROW(slot.wait()) << "reported once";
}

TEST(SpillFault, EndsWhenCallsTransferNothing) {
  struct Stuck : FaultyIo {
    ssize_t write(int, const std::byte*, std::size_t, std::uint64_t) override { return 0; }
    ssize_t read(int, std::byte*, std::size_t, std::uint64_t) override { return is_short ? 10 : 0; }
    bool is_short = false;
  };
  const SpillFolder folder;
  Stuck io;
  SpillFile file({.directory = folder.path(), .io = &io});
  const PatternMemory source(8192, 1), target(8192, 2);
  SpillSlot slot = file.reserve(8192);
  slot.store(source.span());
  EXPECT_THAT(text_of<Error>([&] { slot.wait(); }), HasSubstr("errno 5"));
}

TEST(SpillFault, SaysThatTheFileEndsTooEarly) {
  struct Truncated : FaultyIo {
    ssize_t read(int, std::byte*, std::size_t, std::uint64_t) override { return 0; }
  };
  const SpillFolder folder;
  Truncated io;
  SpillFile file({.directory = folder.path(), .io = &io});
  const PatternMemory source(8192, 1), target(8192, 2);
  SpillSlot slot = file.reserve(8192);
  slot.store(source.span());
  slot.load(target.span());
  EXPECT_THAT(text_of<Corruption>([&] { slot.wait(); }), HasSubstr("the file ends before"));
}

TEST(SpillFault, TurnsToThePageCacheWhenDirectIoIsRefusedLate) {
  const SpillFolder folder;
  for (const auto& [call, number] : {std::pair{FaultyIo::kWrite, 0}, {FaultyIo::kWrite, 1}, {FaultyIo::kRead, 0}}) {
    FaultyIo io;
    io.fail(call, static_cast<std::size_t>(number), {.error_number = EINVAL});
    SpillFile file({.directory = folder.path(), .io = &io});
    if (!file.is_direct()) GTEST_SKIP() << "the file system here has no direct I/O";
    const LogSink before = set_log_sink([](LogLevel, std::string_view) {});
    const PatternMemory source(20'000, 1), target(20'000, 2);
    SpillSlot slot = file.reserve(20'000);
    slot.store(source.span());
    slot.load(target.span());
    slot.wait();
    EXPECT_TRUE(target == source);
    EXPECT_FALSE(file.is_direct());
    EXPECT_GT(io.calls(FaultyIo::kDrop), 0u);
    slot.store(source.span());
    slot.load(target.span());
    slot.wait();
    set_log_sink(before);
  }
}

TEST(SpillFault, ReportsPagesThatCouldNotBeWrittenOut) {
  const SpillFolder folder;
  FaultyIo io;
  io.fail_open_with(O_DIRECT, EINVAL);
  io.fail(FaultyIo::kDrop, 0, {.error_number = EIO});
  io.fail(FaultyIo::kDrop, 1, {.error_number = ENOSYS});
  const LogSink before = set_log_sink([](LogLevel, std::string_view) {});
  SpillFile file({.directory = folder.path(), .io = &io});
  set_log_sink(before);
  const PatternMemory source(20'000, 1, 3), target(20'000, 2, 5);
  SpillSlot slot = file.reserve(20'000);
  slot.store(source.span());
  EXPECT_THROW(slot.wait(), Error);
  slot.store(source.span());
  slot.load(target.span());
  slot.wait();
  EXPECT_TRUE(target == source) << "through the cache every address will do";
}

}  // namespace
}  // namespace plimsoll
