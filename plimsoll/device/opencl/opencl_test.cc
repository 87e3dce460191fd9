// Tests of OpenCL devices: on this machine's first one, or skipped where there is none.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/sanitized_testing.h"
#include "plimsoll/device/device.h"
#include "plimsoll/device/opencl/kernel_sources.h"
#include "plimsoll/device/opencl/opencl_backend.h"
#include "plimsoll/device/opencl/opencl_kind.h"
#include "plimsoll/device/opencl/program_cache.h"
#include "plimsoll/memory/system_memory.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;

class OpenclTest : public testing::Test {
 protected:
  void SetUp() override {
    const DeviceKind kind = opencl_kind();
    const std::vector<PhysicalDevice> found = kind.find();
    if (found.empty()) GTEST_SKIP() << kind.note();
    device_.emplace(
        LogicalDevice{
            .name = found[0].name, .type = found[0].type, .memory_limit = 64_MiB, .physical_device = found[0].name},
        false, false, kind.make(found[0]));
  }
  void TearDown() override {
    for (const Block& block : blocks_) device_->arena().deallocate(block);
  }

  DeviceBackend& backend() { return device_->backend(); }
  KernelQueue& queue() { return *backend().kernels(); }
  void* take(std::size_t bytes) {
    blocks_.push_back(device_->arena().allocate(bytes));
    return blocks_.back().data();
  }
  void* put(const std::vector<float>& values) {
    void* const to = take(values.size() * sizeof(float));
    backend().copy_in(to, values.data(), values.size() * sizeof(float));
    return to;
  }
  std::vector<float> get(const void* from, std::size_t count) {
    std::vector<float> values(count);
    backend().copy_out(values.data(), from, count * sizeof(float));
    return values;
  }

  std::optional<Device> device_;
  std::vector<Block> blocks_;
};

TEST(OpenclDevices, AreListedOnceAndDescribed) {
  const DeviceKind kind = opencl_kind();
  std::set<std::string> names;
  for (const PhysicalDevice& device : kind.find()) {
    EXPECT_TRUE(names.insert(device.name).second) << device.name;
    EXPECT_TRUE(device.type == "GPU" || device.type == "OPENCL");
    EXPECT_GT(device.memory_bytes, 0u);
  }
  EXPECT_FALSE(kind.note().empty());
}

// PoCL's answer changes while the machine runs: asked once, and never more than the machine has.
TEST(OpenclDevices, TheirMemoryIsAskedOnceAndIsTheMachinesAtMost) {
  const DeviceKind kind = opencl_kind();
  const std::vector<PhysicalDevice> found = kind.find();
  if (found.empty()) GTEST_SKIP() << kind.note();
  const std::vector<PhysicalDevice> again = opencl_kind().find();
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(again.at(i).memory_bytes, found[i].memory_bytes);
    EXPECT_TRUE(found[i].type == "GPU" || found[i].memory_bytes <= read_system_memory().total);
  }
}

std::set<std::string> threads_of_process() {
  std::set<std::string> threads;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    threads.insert(entry.path().filename());
  return threads;
}

// The program's signals are handled in the program's threads. CTest runs this in a process of its own.
TEST(OpenclDevices, ThreadsOfTheDriverBlockSignals) {
  const std::set<std::string> before = threads_of_process();
  const DeviceKind kind = opencl_kind();
  const std::vector<PhysicalDevice> found = kind.find();
  if (found.empty()) GTEST_SKIP() << kind.note();
  Device device({.name = found[0].name, .type = found[0].type, .memory_limit = 16_MiB}, false, false,
                kind.make(found[0]));
  const Block block = device.arena().allocate(64);
  device.backend().fill(block.data(), 0, 1, 64);
  device.backend().finish();
  for (const std::string& thread : threads_of_process()) {
    if (before.contains(thread)) continue;
    std::ifstream status("/proc/self/task/" + thread + "/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigBlk:")) {
        const std::uint64_t blocked = std::stoull(line.substr(7), nullptr, 16);
        for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM})
          EXPECT_TRUE(blocked >> (number - 1) & 1) << number << " in thread " << thread;
      }
  }
  device.arena().deallocate(block);
}

TEST_F(OpenclTest, CopiesAndFills) {
  void* const a = put({1, 2, 3, 4});
  void* const b = take(16);
  backend().fill(b, 0, 1, 16);
  backend().copy(b, a, 8);
  EXPECT_THAT(get(b, 4), ElementsAre(1, 2, 0, 0));
  EXPECT_EQ(backend().counters().driver_allocations, 1u);
}

TEST_F(OpenclTest, HoldsItsLimit) {
  EXPECT_THROW(static_cast<void>(device_->arena().allocate(65_MiB)), OutOfMemory);
  take(60_MiB);
  EXPECT_THROW(static_cast<void>(device_->arena().allocate(8_MiB)), OutOfMemory);
  EXPECT_LE(device_->arena().stats().bytes_reserved, 64_MiB);
}

// The process may have no more addresses: the driver refuses, which is an OutOfMemory and not the end of the process.
TEST_F(OpenclTest, WhatTheDriverRefusesIsOutOfMemory) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs addresses of its own";
  void* const a = put({1});
  queue().run(KernelCall("number.add.f32").out(a).in(a).integer(1).number(1).integer(0));
  EXPECT_THAT(get(a, 1), ElementsAre(2));
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit tight{pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + 16_MiB, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  EXPECT_THROW(static_cast<void>(device_->arena().allocate(48_MiB)), OutOfMemory);
  const std::vector<float> there = get(a, 1);  // The device is not lost.
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(there, ElementsAre(2));
  EXPECT_EQ(device_->arena().stats().num_ooms, 1u);
  take(48_MiB);
  queue().run(KernelCall("number.add.f32").out(a).in(a).integer(1).number(1).integer(0));
  EXPECT_THAT(get(a, 1), ElementsAre(3));
}

TEST_F(OpenclTest, TakesSegmentsAsItGrowsAndReturnsThem) {
  auto& opencl = static_cast<OpenclBackend&>(backend());
  EXPECT_EQ(opencl.segment_bytes(), 0u);
  take(1_MiB);
  EXPECT_EQ(opencl.segment_bytes(), 8_MiB);  // An eighth of the limit.
  take(20_MiB);
  EXPECT_EQ(opencl.segment_bytes(), 28_MiB);
  for (const Block& block : blocks_) device_->arena().deallocate(block);
  blocks_.clear();
  device_->arena().trim();
  EXPECT_EQ(opencl.segment_bytes(), 0u);
}

// Every other block is freed, then more is asked for than any hole has: live blocks are moved, and keep their bytes.
TEST_F(OpenclTest, FragmentationIsNotTheReasonToRefuse) {
  constexpr std::size_t kBlock = 256_KiB, kCount = 64_MiB / kBlock;
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < kCount; ++i) {
    blocks.push_back(device_->arena().allocate(kBlock));
    backend().fill(blocks.back().data(), i, 8, kBlock);
  }
  EXPECT_THROW(static_cast<void>(device_->arena().allocate(kBlock)), OutOfMemory);
  for (std::size_t i = 0; i < kCount; i += 2) device_->arena().deallocate(blocks[i]);
  for (int i = 0; i < 3; ++i) take(8_MiB);
  auto& opencl = static_cast<OpenclBackend&>(backend());
  EXPECT_LE(opencl.segment_bytes(), 64_MiB);
  EXPECT_LE(device_->arena().stats().peak_bytes_reserved, 64_MiB);
  for (std::size_t i = 1; i < kCount; i += 2) {
    std::vector<std::uint64_t> values(kBlock / 8);
    backend().copy_out(values.data(), blocks[i].data(), kBlock);
    EXPECT_EQ(std::count(values.begin(), values.end(), i), static_cast<std::ptrdiff_t>(values.size()));
    device_->arena().deallocate(blocks[i]);
  }
}

// Random blocks up to an eighth of a segment: none is refused while live + request <= 7/8 (limit - one segment).
TEST_F(OpenclTest, AnAdversaryIsNotRefused) {
  constexpr std::size_t kLimit = 64_MiB, kSegment = kLimit / 8;
  std::mt19937_64 random(7);
  std::vector<std::pair<Block, std::uint64_t>> live;
  std::size_t bytes_live = 0;
  const auto give = [&](std::size_t i) {
    std::uint64_t ends[2];
    const auto* const bytes = static_cast<const std::byte*>(live[i].first.data());
    backend().copy_out(&ends[0], bytes, 8);
    backend().copy_out(&ends[1], bytes + live[i].first.size() / 64 * 64 - 8, 8);
    EXPECT_EQ(ends[0], live[i].second);
    EXPECT_EQ(ends[1], live[i].second);
    bytes_live -= live[i].first.size();
    device_->arena().deallocate(live[i].first);
  };
  for (std::uint64_t round = 1; round <= 2000; ++round) {
    const std::size_t most = round / 200 % 2 == 0 ? kSegment / 64 : kSegment / 8,
                      bytes = (random() % (most / 64) + 1) * 64;
    if (bytes_live + bytes <= (kLimit - kSegment) / 8 * 7) {
      live.emplace_back(device_->arena().allocate(bytes), round);
      bytes_live += bytes;
      backend().fill(live.back().first.data(), round, 8, bytes);
      continue;
    }
    std::vector<std::pair<Block, std::uint64_t>> kept;
    for (std::size_t i = 0; i < live.size(); ++i)
      if (i % 2 == 0)
        give(i);
      else
        kept.push_back(live[i]);
    live = std::move(kept);
  }
  EXPECT_LE(device_->arena().stats().peak_bytes_reserved, kLimit);
  while (!live.empty()) {
    give(live.size() - 1);
    live.pop_back();
  }
}

// Stream order: who takes a freed block while a kernel still reads it writes after that kernel.
TEST_F(OpenclTest, BlocksAreReusedInOrder) {
  void* const sum = put(std::vector<float>(1024));
  for (int round = 1; round <= 100; ++round) {
    const Block block = device_->arena().allocate(4096);
    backend().fill(block.data(), 0, 1, 4096);
    queue().run(
        KernelCall("number.add.f32").out(block.data()).in(block.data()).integer(1024).number(1).integer(0).items(128));
    queue().run(
        KernelCall("flat.add.f32").out(sum).in(sum).in(block.data()).integer(1024).integer(1).integer(1).items(128));
    device_->arena().deallocate(block);
  }
  EXPECT_EQ(get(sum, 1024)[1023], 100);
  EXPECT_EQ(backend().counters().launches, 200u);
}

// In every layout, for sizes that do not fill tiles; numbers are small, so that sums are exact in any order.
TEST_F(OpenclTest, BothFormsOfProductsAgree) {
  constexpr int kSizes[][3] = {{37, 29, 50}, {5, 7, 3}, {1, 1, 1}, {9, 40, 33}};
  for (const auto& [m, n, inner] : kSizes)
    for (const std::string layout : {"nn", "nt", "tn", "tt"}) {
      SCOPED_TRACE(layout + " " + std::to_string(m));
      const bool turned_a = layout[0] == 't', turned_b = layout[1] == 't';
      std::vector<float> a(m * inner), b(inner * n), bias(n), expected(m * n);
      for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 11) - 5;
      for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 7) - 3;
      for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i);
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          float sum = 1;  // What is there already.
          for (int k = 0; k < inner; ++k)
            sum += a[turned_a ? k * m + i : i * inner + k] * b[turned_b ? j * inner + k : k * n + j];
          expected[i * n + j] = std::max(sum + bias[j], 0.f);
        }
      void *const x = put(a), *const y = put(b), *const z = put(bias);
      const std::size_t columns = (n + 15) / 16, rows = (m + 15) / 16;
      for (const std::string form : {"matmul_registers.", "matmul_local."}) {
        void* const out = put(std::vector<float>(m * n, 1.f));
        const std::string kernel = form + layout + ".relu";
        KernelCall call(kernel);
        call.out(out).in(x).in(y).in(z).integer(m).integer(n).integer(inner).integer(1).integer(0).integer(0).integer(
            1);
        if (form == "matmul_local.")
          call.items(columns * 16, rows * 16).group(16, 16);
        else
          call.items(columns, (m + 3) / 4);
        ASSERT_TRUE(queue().run(call));
        EXPECT_EQ(get(out, expected.size()), expected) << form;
      }
    }
}

template <class T>
ConstTensorView indices_at(const void* address, std::size_t count) {
  return ConstTensorView(address, 0, sizeof(T) == 8 ? i64 : i32, Shape({count}));
}

TEST_F(OpenclTest, TheFirstRefusedIndexIsInTheWord) {
  const auto check = [&]<class T>(std::vector<T> indices, std::uint32_t word, std::uint32_t number) {
    void* const there = take(indices.size() * sizeof(T));
    backend().copy_in(there, indices.data(), indices.size() * sizeof(T));
    return queue().check_indices(word, number, indices_at<T>(there, indices.size()), 1000);
  };
  const std::uint32_t a = queue().take_word(), b = queue().take_word();
  ASSERT_NE(a, b);
  std::vector<std::int32_t> many(1000);
  std::iota(many.begin(), many.end(), 0);
  EXPECT_TRUE(check(many, a, 1));
  EXPECT_EQ(queue().read_word(a).check, 0u);
  many[700] = -5;
  many[130] = 1000;
  EXPECT_TRUE(check(many, a, 2));
  EXPECT_TRUE(check(std::vector<std::int64_t>{0, std::int64_t{1} << 40}, a, 3));  // Not the first.
  EXPECT_TRUE(check(std::vector<std::int64_t>{0, -(std::int64_t{1} << 40)}, b, 4));
  const RefusedIndex first = queue().read_word(a), other = queue().read_word(b);
  EXPECT_EQ(first.check, 2u);
  EXPECT_EQ(first.position, 130);
  EXPECT_EQ(first.index, 1000);
  EXPECT_EQ(other.check, 4u);
  EXPECT_EQ(other.position, 1);
  EXPECT_EQ(other.index, -(std::int64_t{1} << 40));
  EXPECT_EQ(queue().read_word(a).check, 0u);  // Reading clears it.
  EXPECT_TRUE(check(many, b, 5));
  queue().give_word(b);
  EXPECT_EQ(queue().take_word(), b);
  EXPECT_EQ(queue().read_word(b).check, 0u);
  EXPECT_FALSE(queue().check_indices(a, 1, indices_at<std::int32_t>(nullptr, 1), std::int64_t{1} << 40));
}

TEST_F(OpenclTest, AGuardedCallDoesNothingOnceAnIndexWasRefused) {
  void* const a = put({1, 2});
  const std::int32_t wrong = 5;
  void* const index = take(sizeof(wrong));
  backend().copy_in(index, &wrong, sizeof(wrong));
  const std::uint32_t word = queue().take_word();
  const auto add = [&] {
    KernelCall call("number.add.f32");
    ASSERT_TRUE(queue().run(call.out(a).in(a).integer(2).number(10).integer(0).guard(word)));
  };
  add();
  EXPECT_TRUE(queue().check_indices(word, 1, indices_at<std::int32_t>(index, 1), 6));
  add();
  EXPECT_THAT(get(a, 2), ElementsAre(21, 22));
  EXPECT_TRUE(queue().check_indices(word, 2, indices_at<std::int32_t>(index, 1), 5));
  add();
  EXPECT_THAT(get(a, 2), ElementsAre(21, 22));
  EXPECT_EQ(queue().read_word(word).check, 2u);
  add();
  EXPECT_THAT(get(a, 2), ElementsAre(31, 32));
  queue().give_word(word);
}

TEST_F(OpenclTest, ThereAreOnlySoManyWords) {
  std::set<std::uint32_t> words;
  for (;;) {
    const std::uint32_t word = queue().take_word();
    if (word == KernelQueue::kNoWord) break;
    ASSERT_TRUE(words.insert(word).second);
  }
  EXPECT_EQ(words.size(), 256u);
  EXPECT_EQ(backend().counters().driver_allocations, 1u);
  for (const std::uint32_t word : words) queue().give_word(word);
}

// The environment that keeps PoCL from installing handlers is set before it is loaded.
TEST_F(OpenclTest, LeavesSignalHandlersAlone) {
  if (kSanitized) GTEST_SKIP() << "sanitizers install handlers";
  void* const a = put({1});
  queue().run(KernelCall("number.add.f32").out(a).in(a).integer(1).number(1).integer(0));
  EXPECT_THAT(get(a, 1), ElementsAre(2));
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGABRT}) {
    struct sigaction found = {};
    sigaction(number, nullptr, &found);
    EXPECT_TRUE(found.sa_handler == SIG_DFL || found.sa_handler == SIG_IGN) << number;
  }
}

// Only for tools/check_opencl: the simulator must find this, or it finds nothing.
TEST_F(OpenclTest, DISABLED_WritesOutsideOfABlock) {
  void* const a = put(std::vector<float>(1024));
  queue().run(KernelCall("number.add.f32").out(a).in(a).integer(1040).number(1).integer(0).items(130));
  backend().finish();
}

TEST_F(OpenclTest, HasNoKernelOfAnotherName) {
  EXPECT_FALSE(queue().run(KernelCall("nothing")));
  EXPECT_FALSE(queue().has("flat.add.f16"));
  EXPECT_FALSE(queue().has("matmul.nx.linear"));
  EXPECT_TRUE(queue().has("matmul.tt.tanh"));
  EXPECT_FALSE(queue().run(KernelCall("flat.add.f32").integer(std::int64_t{1} << 40)));  // Does not fit.
}

TEST_F(OpenclTest, AFailureIsThrownByEveryCallThatWaits) {
  void* const a = put({1});
  static_cast<OpenclBackend&>(backend()).fail_for_testing("device: lost");
  backend().copy_in(a, &a, 4);
  float value = 0;
  EXPECT_THROW(backend().copy_out(&value, a, 4), Error);
  EXPECT_THROW(backend().finish(), Error);
  EXPECT_TRUE(queue().run(KernelCall("number.add.f32").out(a).in(a).integer(1).number(1).integer(0)));
}

// PoCL's threads are gone in a child: it says so instead of waiting for ever.
TEST_F(OpenclTest, AChildIsRefused) {
  void* const a = put({1});
  const pid_t child = fork();
  if (child == 0) {
    float value = 0;
    try {
      backend().copy_out(&value, a, 4);
    } catch (const Error&) {
      _exit(0);
    }
    _exit(1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(get(a, 1), ElementsAre(1));
}

TEST(ProgramCache, KeepsWhatItWasGivenAndNothingElse) {
  const auto folder = std::filesystem::temp_directory_path() / ("plimsoll_cache_" + std::to_string(getpid()));
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  const ProgramCache cache("source"), other("another source");
  EXPECT_EQ(cache.read(), "");
  cache.write("binary");
  EXPECT_EQ(cache.read(), "binary");
  EXPECT_EQ(other.read(), "");
  std::filesystem::copy_file(cache.path(), other.path());
  EXPECT_EQ(other.read(), "");  // Made from something else.
  std::fstream(cache.path(), std::ios::in | std::ios::out | std::ios::binary).seekp(66).put('X');
  EXPECT_EQ(cache.read(), "");
  std::filesystem::resize_file(cache.path(), 10);
  EXPECT_EQ(cache.read(), "");
  setenv("PLIMSOLL_PROGRAM_CACHE", "off", 1);
  EXPECT_TRUE(ProgramCache("source").path().empty());
  unsetenv("PLIMSOLL_PROGRAM_CACHE");
  unsetenv("XDG_CACHE_HOME");
  std::filesystem::remove_all(folder);
}

// A folder that cannot be written costs the cache, nothing else; a file whose header promises more is not used.
TEST(ProgramCache, DoesWithoutAFolder) {
  const auto folder = std::filesystem::temp_directory_path() / ("plimsoll_nocache_" + std::to_string(getpid()));
  std::ofstream(folder) << "a file, where a folder should be";
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  const ProgramCache cache("source");
  cache.write("binary");
  EXPECT_EQ(cache.read(), "");
  setenv("XDG_CACHE_HOME", "not/absolute", 1);
  EXPECT_EQ(ProgramCache("source").path().string().find("not/absolute"), std::string::npos);
  unsetenv("XDG_CACHE_HOME");
  std::filesystem::remove(folder);
}

// Many writers and readers at once: a reader sees a whole file of one of them, or none.
TEST(ProgramCache, WritersAtOnceLeaveAWholeFile) {
  const auto folder = std::filesystem::temp_directory_path() / ("plimsoll_writers_" + std::to_string(getpid()));
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const ProgramCache mine("source");
      for (int round = 0; round < 50; ++round) mine.write(std::string(100000, static_cast<char>('a' + i)));
      _exit(0);
    }
    children.push_back(child);
  }
  const ProgramCache cache("source");
  for (int round = 0; round < 200; ++round) {
    const std::string seen = cache.read();
    EXPECT_TRUE(seen.empty() || seen == std::string(100000, seen[0]));
  }
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(cache.read().size(), 100000u);
  std::size_t files = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) files += file.is_regular_file();
  EXPECT_EQ(files, 1u);
  unsetenv("XDG_CACHE_HOME");
  std::filesystem::remove_all(folder);
}

// A file that is whole but nonsense to the driver is compiled again.
TEST_F(OpenclTest, ADamagedProgramIsBuiltAgain) {
  const auto folder = std::filesystem::temp_directory_path() / ("plimsoll_nonsense_" + std::to_string(getpid()));
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  const auto added = [&](float number) {
    void* const a = put({1});
    queue().run(KernelCall("number.add.f32").out(a).in(a).integer(1).number(number).integer(0));
    return get(a, 1)[0];
  };
  EXPECT_EQ(added(1), 2);
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder))
    if (file.is_regular_file()) std::filesystem::resize_file(file, 70);
  for (const Block& block : blocks_) device_->arena().deallocate(block);
  blocks_.clear();
  device_.reset();
  SetUp();  // A device that has built nothing yet.
  EXPECT_EQ(added(2), 3);
  unsetenv("XDG_CACHE_HOME");
  std::filesystem::remove_all(folder);
}

TEST(KernelSources, ExistForTheFamilies) {
  for (const char* name :
       {"unary.exp.f32", "flat.equal.i64", "broad.multiply.f32", "number.power.f32", "cast.f32.i64", "matmul.tn.linear",
        "matmul_registers.nn.gelu", "softmax", "update.adam", "fill.4", "strided.8", "argmax.f32"}) {
    EXPECT_TRUE(has_kernel_source(name)) << name;
    EXPECT_NE(kernel_source(name).find("kernel "), std::string::npos);
    EXPECT_NE(kernel_source(name).find("FP_CONTRACT OFF"), std::string::npos);
    const std::string guarded = kernel_source(std::string(name) + kGuarded);
    EXPECT_NE(guarded.find("void run(IN(guard, uint), "), std::string::npos) << guarded;
    EXPECT_NE(guarded.find("{\n  ADDRESS(guard, uint)\n  if (*guard != 0) return;"), std::string::npos) << guarded;
  }
  for (const char* name : {"unary.exp", "unary.exp.i32", "flat.add.u8", "cast.f16.f32", "", "unary"})
    EXPECT_FALSE(has_kernel_source(name)) << name;
}

}  // namespace
}  // namespace plimsoll
