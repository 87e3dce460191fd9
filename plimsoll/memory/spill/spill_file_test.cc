#include "plimsoll/memory/spill/spill_file.h"

#include <sys/resource.h>

#include <cstdlib>
#include <memory>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/memory/spill/spill_testing.h"

namespace plimsoll {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t kSizes[] = {1, 4095, 4096, 4097, 100'000, 1_MiB, 4_MiB + 8192, 5_MiB + 1};

TEST(SpillFile, BringsBackWhatWasStored) {
  const SpillFolder folder;
  const PatternMemory staging(SpillFile::staging_bytes(), 0);
  for (const std::size_t alignment : {std::size_t{0}, kSpillAlignment})
    for (const std::size_t shift : {0u, 64u, 1u}) {
      FaultyIo io;
      io.alignment = alignment;
      SpillFile file({.directory = folder.path(), .staging = staging.span(), .io = &io});
      for (const std::size_t bytes : kSizes) {
        SpillSlot slot = file.reserve(bytes);
        const PatternMemory source(bytes, 1, shift), same(bytes, 1, shift), target(bytes, 2, 8 * shift);
        slot.store(source.span());
        slot.wait();
        EXPECT_EQ(slot.stored_bytes(), bytes);
        EXPECT_TRUE(source == same);
        slot.load(target.span());
        slot.wait();
        EXPECT_TRUE(target == source) << bytes << " bytes, shifted by " << shift;
      }
      EXPECT_FALSE(io.saw_open_signals);
    }
  EXPECT_TRUE(folder.is_empty());
}

TEST(SpillFile, NeedsNoStagingForAlignedMemoryOfAnySize) {
  const SpillFolder folder;
  FaultyIo io;
  SpillFile file({.directory = folder.path(), .io = &io});
  for (const std::size_t bytes : kSizes) {
    SpillSlot slot = file.reserve(bytes);
    const PatternMemory source(bytes, 3), target(bytes, 4);
    slot.store(source.span());
    slot.load(target.span());  // Waits for the store.
    slot.wait();
    EXPECT_TRUE(target == source) << bytes;
  }
}

TEST(SpillFile, WritesOneRequestPerPieceOfPaddedMemory) {
  const SpillFolder folder;
  FaultyIo io;
  SpillFile file({.directory = folder.path(), .io = &io});
  SpillSlot slot = file.reserve(8_MiB + 4096);
  const PatternMemory source(8_MiB + 4096, 3);
  slot.store(source.span());
  slot.wait();
  EXPECT_EQ(io.calls(FaultyIo::kWrite), 3u);
}

TEST(SpillFile, RefusesMemoryThatNeedsStagingWithoutIt) {
  const SpillFolder folder;
  FaultyIo io;
  SpillFile file({.directory = folder.path(), .io = &io});
  if (!file.is_direct()) GTEST_SKIP() << "the file system here has no direct I/O";
  SpillSlot slot = file.reserve(10'000);
  const PatternMemory source(10'000, 3, 1), aligned(10'000, 4);
  EXPECT_THAT(text_of<InvalidArgument>([&] { slot.store(source.span()); }), HasSubstr("without a staging block"));
  slot.store(aligned.span());
  slot.wait();
  EXPECT_THROW(slot.load(source.span()), InvalidArgument);
  EXPECT_EQ(slot.stored_bytes(), 10'000u) << "the slot is as it was";
}

TEST(SpillFile, RefusesStagingOfTheWrongSizeOrAddress) {
  const SpillFolder folder;
  const PatternMemory staging(SpillFile::staging_bytes() + 64, 0);
  FaultyIo io;
  EXPECT_THROW(SpillFile({.directory = folder.path(), .staging = staging.span(), .io = &io}), InvalidArgument);
  EXPECT_THROW(SpillFile({.directory = folder.path(), .staging = staging.span().subspan(64), .io = &io}),
               InvalidArgument);
}

TEST(SpillFile, RefusesSizesThatDoNotFitAndLoadsOfNothing) {
  const SpillFolder folder;
  FaultyIo io;
  SpillFile file({.directory = folder.path(), .io = &io});
  EXPECT_THROW(static_cast<void>(file.reserve(0)), InvalidArgument);
  SpillSlot slot = file.reserve(5000);
  const PatternMemory memory(6000, 3), target(6000, 3);
  EXPECT_THROW(slot.load(target.span().first(5000)), FailedPrecondition) << "nothing is stored yet";
  EXPECT_THROW(slot.store(memory.span()), InvalidArgument);
  EXPECT_THROW(slot.store({}), InvalidArgument);
  slot.store(memory.span().first(4500));
  slot.wait();
  EXPECT_THROW(slot.load(target.span().first(5000)), InvalidArgument) << "4500 bytes are stored";
  SpillSlot other = std::move(slot);
  EXPECT_FALSE(slot);  // NOLINT(bugprone-use-after-move)
  EXPECT_THROW(slot.store(memory.span()), FailedPrecondition);
  EXPECT_EQ(slot.bytes() + slot.stored_bytes() + slot.offset(), 0u);
  EXPECT_NO_THROW(slot.wait());
  other.load(target.span().first(4500));
  other.wait();
}

TEST(SpillFile, RefusesWhatWouldPassItsLimitAndChangesNothing) {
  const SpillFolder folder;
  FaultyIo io;
  SpillFile file({.directory = folder.path(), .limit = 12'288, .io = &io});
  const SpillSlot first = file.reserve(4097);
  try {
    static_cast<void>(file.reserve(5000));
    FAIL() << "8192 + 8192 are more than 12288";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.requested(), 5000u);
    EXPECT_EQ(error.limit(), 12'288u);
    EXPECT_EQ(error.in_use(), 8192u);
    EXPECT_EQ(error.smallest_sufficient_limit(), 16'384u);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(folder.path().string()), HasSubstr("raise the limit")));
  }
  EXPECT_EQ(file.stats().reserved_bytes, 8192u);
  EXPECT_NO_THROW(static_cast<void>(file.reserve(4096)));
  EXPECT_THROW(static_cast<void>(file.reserve(SIZE_MAX)), OutOfMemory);
}

TEST(SpillFile, RefusesWhatTheDiskHasNoRoomForAndChangesNothing) {
  const SpillFolder folder;
  for (const int error_number : {ENOSPC, EDQUOT, EFBIG}) {
    FaultyIo io;
    io.fail(FaultyIo::kAllocate, 0, {.error_number = EINTR});
    io.fail(FaultyIo::kAllocate, 2, {.error_number = error_number});
    SpillFile file({.directory = folder.path(), .io = &io});
    const SpillSlot first = file.reserve(8192);
    const std::string text = text_of<OutOfMemory>([&] { static_cast<void>(file.reserve(5000)); });
    EXPECT_THAT(text, AllOf(HasSubstr("cannot reserve 4.9 KiB (5000 bytes)"), HasSubstr(folder.path().string()),
                            HasSubstr("are free there, 8.0 KiB (8192 bytes) are reserved already"),
                            HasSubstr(fmt::format("errno {}", error_number))));
    EXPECT_EQ(file.stats().reserved_bytes, 8192u);
    EXPECT_EQ(file.stats().file_bytes, 8192u);
    EXPECT_NO_THROW(static_cast<void>(file.reserve(5000)));
  }
  FaultyIo io;
  io.fail(FaultyIo::kAllocate, 0, {.error_number = EOPNOTSUPP});
  io.fail(FaultyIo::kAllocate, 1, {.error_number = EIO});
  SpillFile file({.directory = folder.path(), .io = &io});
  EXPECT_THAT(text_of<Unsupported>([&] { static_cast<void>(file.reserve(1)); }), HasSubstr("cannot reserve space"));
  EXPECT_THAT(text_of<Error>([&] { static_cast<void>(file.reserve(1)); }), HasSubstr("errno 5"));
}

TEST(SpillFile, ReusesWhatFreedSlotsLeft) {
  const SpillFolder folder;
  FaultyIo io;
  SpillFile file({.directory = folder.path(), .io = &io});
  SpillSlot a = file.reserve(100'000), b = file.reserve(100'000), c = file.reserve(100'000);
  const std::size_t whole = file.stats().file_bytes;
  EXPECT_EQ(whole, 3 * 102'400u);
  const std::uint64_t offset = b.offset();
  b = SpillSlot();
  b = file.reserve(50'000);
  EXPECT_EQ(b.offset(), offset);
  a = SpillSlot();
  b = SpillSlot();
  b = file.reserve(200'000);
  EXPECT_EQ(b.offset(), 0u) << "holes were merged";
  EXPECT_EQ(file.stats().file_bytes, whole);
}

TEST(SpillFile, KeepsSlotsInOrderOfTheirBeginning) {
  const SpillFolder folder;
  FaultyIo io;
  SpillFile file({.directory = folder.path(), .io = &io});
  std::vector<SpillSlot> slots;
  std::vector<PatternMemory> sources, targets;
  for (std::uint32_t i = 0; i < 20; ++i) {
    slots.push_back(file.reserve(40'000));
    sources.emplace_back(40'000, i);
    targets.emplace_back(40'000, 100 + i);
  }
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i].store(sources[i].span());
    for (std::size_t i = slots.size(); i-- > 0;) slots[i].load(targets[i].span());
    for (std::size_t i = 0; i < slots.size(); ++i) {
      slots[i].wait();
      EXPECT_FALSE(slots[i].is_busy());
      EXPECT_TRUE(targets[i] == sources[i]);
      sources[i].fill(static_cast<std::uint32_t>(1000 * round + 7 * i));
    }
  }
}

TEST(SpillFile, FreesSlotsWhoseTransfersNobodyWaitedFor) {
  const SpillFolder folder;
  FaultyIo io;
  SpillFile file({.directory = folder.path(), .io = &io});
  const PatternMemory source(4_MiB, 1), kept(4_MiB, 1);
  SpillSlot last = file.reserve(4_MiB);
  for (int round = 0; round < 5; ++round) {
    std::vector<SpillSlot> slots;
    for (int i = 0; i < 8; ++i) {
      slots.push_back(file.reserve(4_MiB));
      slots.back().store(source.span());
    }
    last.store(source.span());
    slots.erase(slots.begin() + 3);
  }
  EXPECT_EQ(file.stats().reserved_bytes, 4_MiB);
  const PatternMemory target(4_MiB, 2);
  last.load(target.span());
  last.wait();
  EXPECT_TRUE(target == kept);
}

TEST(SpillFile, IsOpenAsLongAsItsSlotsAre) {
  const SpillFolder folder;
  FaultyIo io;
  SpillSlot slot = SpillFile({.directory = folder.path(), .io = &io}).reserve(9000);
  const PatternMemory source(9000, 5), target(9000, 6);
  slot.store(source.span());
  slot.load(target.span());
  slot.wait();
  EXPECT_TRUE(target == source);
}

TEST(SpillFile, CountsBytesTransfersAndWaiting) {
  const SpillFolder folder;
  FaultyIo io;
  io.fail(FaultyIo::kWrite, 1, {.error_number = EIO});
  SpillFile file({.directory = folder.path(), .io = &io});
  SpillSlot slot = file.reserve(40'960);
  const PatternMemory source(40'960, 5), target(40'960, 6);
  slot.store(source.span());
  slot.wait();
  slot.load(target.span());
  slot.wait();
  slot.store(source.span());
  EXPECT_THROW(slot.wait(), Error);
  const SpillStats stats = file.stats();
  EXPECT_EQ(stats.stored_bytes, 40'960u);
  EXPECT_EQ(stats.loaded_bytes, 40'960u);
  EXPECT_EQ(stats.stores, 1u);
  EXPECT_EQ(stats.loads, 1u);
  EXPECT_EQ(stats.failures, 1u);
  EXPECT_GE(stats.stall_ns, 0);
}

TEST(SpillFile, AllocatesNothingToTransfer) {
  const SpillFolder folder;
  const PatternMemory staging(SpillFile::staging_bytes(), 0);
  FaultyIo io;
  SpillFile file({.directory = folder.path(), .staging = staging.span(), .io = &io});
  SpillSlot slot = file.reserve(2_MiB);
  const PatternMemory source(2_MiB, 5, 64), target(2_MiB, 6);
  slot.store(source.span());  // Starts the thread.
  slot.wait();
  const std::size_t before = heap_allocations();
  slot.load(target.span());
  slot.wait();
  slot.store(source.span());
  slot.wait();
  EXPECT_EQ(heap_allocations(), before);
}

TEST(SpillFile, MeasuresItsBandwidthOnceAndThenByTransfers) {
  const SpillFolder folder;
  FaultyIo io;
  SpillFile file({.directory = folder.path(), .limit = 3_MiB, .io = &io});
  const SpillBandwidth measured = file.bandwidth();
  EXPECT_GT(measured.store, 0);
  EXPECT_GT(measured.load, 0);
  EXPECT_EQ(file.stats().file_bytes, 2_MiB) << "what fits into the limit";
  EXPECT_EQ(file.stats().reserved_bytes, 0u);
  EXPECT_EQ(file.stats().stored_bytes, 0u);
  const std::size_t writes = io.calls(FaultyIo::kWrite);
  EXPECT_EQ(file.bandwidth().store, measured.store);
  EXPECT_EQ(io.calls(FaultyIo::kWrite), writes) << "measured once";
  SpillSlot slot = file.reserve(1_MiB);
  const PatternMemory source(1_MiB, 1);
  slot.store(source.span());
  slot.wait();
  EXPECT_NE(file.bandwidth().store, measured.store);
  EXPECT_EQ(file.bandwidth().load, measured.load);
}

TEST(SpillFile, SaysWhyItsBandwidthCannotBeMeasured) {
  const SpillFolder folder;
  FaultyIo io;
  SpillFile small({.directory = folder.path(), .limit = 100'000, .io = &io});
  EXPECT_THROW(small.bandwidth(), OutOfMemory);
  io.fail(FaultyIo::kRead, 0, {.error_number = EIO});
  SpillFile file({.directory = folder.path(), .limit = 2_MiB, .io = &io});
  EXPECT_THROW(file.bandwidth(), Error);
  EXPECT_EQ(file.stats().reserved_bytes, 0u);
  EXPECT_GT(file.bandwidth().load, 0);
}

TEST(SpillFile, SaysThatItsThreadCannotBeStarted) {
  const SpillFolder folder;
  FaultyIo io;
  io.refuses_threads = true;
  SpillFile file({.directory = folder.path(), .io = &io});
  SpillSlot slot = file.reserve(4096);
  const PatternMemory source(4096, 1), target(4096, 2);
  EXPECT_THAT(text_of<Error>([&] { slot.store(source.span()); }), HasSubstr("cannot start a thread"));
  EXPECT_NO_THROW(slot.wait()) << "nothing has begun";
  io.refuses_threads = false;
  slot.store(source.span());
  slot.load(target.span());
  slot.wait();
  EXPECT_TRUE(target == source);
}

// No handler is set: without care the signal ends the process.
TEST(SpillFile, SurvivesTheProcessesFileSizeLimit) {
  const SpillFolder folder;
  FaultyIo io;
  SpillFile file({.directory = folder.path(), .io = &io});
  SpillSlot slot = file.reserve(2_MiB);
  const PatternMemory source(2_MiB, 1), target(2_MiB, 2);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {.rlim_cur = 1_MiB, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string reserved = text_of<OutOfMemory>([&] { static_cast<void>(file.reserve(1_MiB)); });
  slot.store(source.span());
  const std::string stored = text_of<OutOfMemory>([&] { slot.wait(); });
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(reserved, AllOf(HasSubstr("errno 27"), HasSubstr("ulimit -f")));
  EXPECT_THAT(stored, AllOf(HasSubstr("cannot store"), HasSubstr("errno 27")));
  EXPECT_EQ(slot.stored_bytes(), 0u);
  EXPECT_NO_THROW(static_cast<void>(file.reserve(1_MiB)));
  slot.store(source.span());
  slot.load(target.span());
  slot.wait();
  EXPECT_TRUE(target == source);
}

// A file system in a file, as long as it lives.
class SmallDisk {
 public:
  explicit SmallDisk(const std::filesystem::path& folder) : image_(folder / "image"), path_(folder / "disk") {
    std::filesystem::create_directory(path_);
    is_mounted_ = run("truncate -s 16M '" + image_.string() + "' && mkfs.ext4 -q '" + image_.string() +
                      "' && mount -o loop '" + image_.string() + "' '" + path_.string() + "'");
  }
  ~SmallDisk() {
    EXPECT_TRUE(!is_mounted_ || run("umount '" + path_.string() + "'")) << "something is still open there";
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool is_mounted() const noexcept { return is_mounted_; }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  static bool run(const std::string& command) {
    return std::system(("(" + command + ") > /dev/null 2>&1").c_str()) == 0;
  }
  const std::filesystem::path image_, path_;
  bool is_mounted_ = false;
};

TEST(SpillFile, RefusesWhatASmallDiskHasNoRoomFor) {
  const SpillFolder folder;
  const SmallDisk disk(folder.path());
  if (!disk.is_mounted()) GTEST_SKIP() << "a file cannot be mounted here (it takes root, mkfs.ext4 and a loop device)";
  SpillFile file({.directory = disk.path()});
  SpillSlot slot = file.reserve(4_MiB);
  const std::string text = text_of<OutOfMemory>([&] { static_cast<void>(file.reserve(64_MiB)); });
  EXPECT_THAT(text,
              AllOf(HasSubstr("no space left on device"), HasSubstr(disk.path().string()), HasSubstr("64.0 MiB")));
  const PatternMemory source(4_MiB, 1), target(4_MiB, 2);
  slot.store(source.span());
  slot.load(target.span());
  slot.wait();
  EXPECT_TRUE(target == source);
  std::vector<SpillSlot> slots;
  EXPECT_THROW(for (;;) slots.push_back(file.reserve(512_KiB)), OutOfMemory);
  EXPECT_GT(slots.size(), 4u);
  slots.pop_back();
  EXPECT_NO_THROW(slots.push_back(file.reserve(512_KiB))) << "space that was freed is ours";
  slots.clear();
  EXPECT_GT(file.bandwidth().load, 0);
}

TEST(SpillFile, MayHaveAStagingBlockOfItsOwn) {
  const SpillFolder folder;
  FaultyIo io;
  io.alignment = kSpillAlignment;
  SpillFile file({.directory = folder.path(), .own_staging_bytes = 2 * kSpillAlignment, .io = &io});
  const SpillFile other({.directory = folder.path(), .io = &io});
  SpillSlot slot = file.reserve(30'000);
  EXPECT_TRUE(slot.is_of(file));
  EXPECT_FALSE(slot.is_of(other));
  EXPECT_FALSE(SpillSlot().is_of(file));
  const PatternMemory source(30'000, 7, 64);
  PatternMemory target(30'000, 0, 64);
  slot.store(source.span());
  slot.wait();
  slot.load(target.span());
  slot.wait();
  EXPECT_TRUE(std::ranges::equal(source.span(), target.span()));
  EXPECT_THROW(SpillFile({.directory = folder.path(), .own_staging_bytes = 1000, .io = &io}), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
