// For tests of spill files: a directory, memory with a pattern, and system calls that fail on request.
//
//   SpillFolder folder;
//   FaultyIo io;
//   io.fail(FaultyIo::kWrite, 2, {.error_number = EIO});       // the third write fails, once
//   SpillFile file({.directory = folder.path(), .io = &io});
//   PatternMemory source(10'000, 7), target(10'000, 0);        // aligned; {..., .shift = 64} is not
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/memory/spill/spill_file.h"
#include "plimsoll/memory/spill/spill_io.h"

namespace plimsoll {

// A fresh directory next to the tests, which are on a disk more often than the directory for temporary files.
class SpillFolder {
 public:
  SpillFolder() {
    std::string pattern = (std::filesystem::current_path() / "spill_test_XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("cannot make " + pattern);
    path_ = pattern;
  }
  ~SpillFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  SpillFolder(const SpillFolder&) = delete;
  SpillFolder& operator=(const SpillFolder&) = delete;
  const std::filesystem::path& path() const noexcept { return path_; }
  bool is_empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::filesystem::path path_;
};

// For tests that spill to a real disk: skipped when the tests' directory is kept in memory.
class OnDisk : public testing::Test {
 protected:
  void SetUp() override {
    SpillIo::FileSystem facts;
    const int opened = ::open(folder_.path().c_str(), O_PATH | O_CLOEXEC);
    SpillIo::system().file_system(opened, facts);
    ::close(opened);
    if (facts.type == TMPFS_MAGIC) GTEST_SKIP() << "the tests' directory is kept in memory";
  }
  std::string directory() const { return folder_.path().string(); }

  const SpillFolder folder_;
};

// Counts calls and makes some of them fail, each once. Unless told otherwise it says that every directory is on a disk,
// so that tests run in a container whose disk is memory.
class FaultyIo : public SpillIo {
 public:
  enum Call { kOpen, kUnlink, kAllocate, kWrite, kRead, kDrop, kCalls };
  struct Fault {
    int error_number = 0;        // The call does nothing and fails so.
    std::size_t most_bytes = 0;  // Or transfers only so many.
    bool corrupts = false;       // Or one byte is changed on the way.
  };

  void fail(Call call, std::size_t number, Fault fault) { faults_[{call, number}] = fault; }
  void fail_open_with(int flag, int error_number) { refused_flags_[flag] = error_number; }  // Every time.
  std::size_t calls(Call call) const {
    const std::lock_guard lock(mutex_);
    return calls_.at(call);
  }

  std::uint64_t file_system_type = EXT4_SUPER_MAGIC;  // 0: as it is.
  std::size_t alignment = 0;                          // 0: as it is.
  bool refuses_threads = false;
  bool saw_open_signals = false;  // A transfer ran on a thread that a signal could interrupt.

  int open(const char* path, int flags, mode_t mode) override {
    for (const auto& [flag, error_number] : refused_flags_)
      if ((flags & flag) == flag) return errno = error_number, -1;
    const Fault fault = next(kOpen);
    return fault.error_number ? refused(fault) : SpillIo::open(path, flags, mode);
  }
  int unlink(const char* path) override {
    const Fault fault = next(kUnlink);
    return fault.error_number ? refused(fault) : SpillIo::unlink(path);
  }
  int file_system(int file, FileSystem& facts) override {
    const int result = SpillIo::file_system(file, facts);
    if (file_system_type != 0) facts.type = file_system_type;
    return result;
  }
  std::size_t address_alignment(int file) override { return alignment ? alignment : SpillIo::address_alignment(file); }
  int allocate(int file, std::uint64_t offset, std::uint64_t bytes) override {
    const Fault fault = next(kAllocate);
    return fault.error_number ? refused(fault) : SpillIo::allocate(file, offset, bytes);
  }
  ssize_t write(int file, const std::byte* from, std::size_t bytes, std::uint64_t offset) override {
    watch_signals();
    const Fault fault = next(kWrite);
    if (fault.error_number) return refused(fault);
    if (fault.most_bytes) return short_write(file, from, std::min(bytes, fault.most_bytes), offset);
    const ssize_t done = SpillIo::write(file, from, bytes, offset);
    if (fault.corrupts && done > 0) corrupt(file, offset + static_cast<std::uint64_t>(done) / 2);
    return done;
  }
  ssize_t read(int file, std::byte* to, std::size_t bytes, std::uint64_t offset) override {
    watch_signals();
    const Fault fault = next(kRead);
    if (fault.error_number) return refused(fault);
    const ssize_t done = SpillIo::read(file, to, bytes, offset);
    if (fault.corrupts && done > 0) to[done / 2] ^= std::byte{1};
    return fault.most_bytes ? std::min(done, static_cast<ssize_t>(fault.most_bytes)) : done;
  }
  int drop_from_cache(int file, std::uint64_t offset, std::uint64_t bytes) override {
    const Fault fault = next(kDrop);
    return fault.error_number ? refused(fault) : SpillIo::drop_from_cache(file, offset, bytes);
  }
  std::thread start_thread(void (*body)(void*), void* argument) override {
    if (refuses_threads) throw std::system_error(EAGAIN, std::generic_category());
    return SpillIo::start_thread(body, argument);
  }

 private:
  Fault next(Call call) {
    const std::lock_guard lock(mutex_);
    const auto found = faults_.find({call, calls_.at(call)++});
    return found == faults_.end() ? Fault{} : found->second;
  }
  static int refused(const Fault& fault) { return errno = fault.error_number, -1; }
  // As a kernel may: the bytes that it reports, and no others. Through a block, as direct I/O wants whole ones.
  static ssize_t short_write(int file, const std::byte* from, std::size_t bytes, std::uint64_t offset) {
    const std::size_t whole = bytes / kSpillAlignment * kSpillAlignment;
    if (whole > 0 && pwrite(file, from, whole, static_cast<off_t>(offset)) < 0) return -1;
    return static_cast<ssize_t>(bytes);
  }
  static void corrupt(int file, std::uint64_t offset) {
    alignas(kSpillAlignment) std::array<std::byte, kSpillAlignment> block;
    const auto at = static_cast<off_t>(offset / kSpillAlignment * kSpillAlignment);
    ASSERT_EQ(pread(file, block.data(), block.size(), at), static_cast<ssize_t>(block.size()));
    block[17] ^= std::byte{4};
    ASSERT_EQ(pwrite(file, block.data(), block.size(), at), static_cast<ssize_t>(block.size()));
  }
  void watch_signals() {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    if (sigismember(&mask, SIGXFSZ) != 1 || sigismember(&mask, SIGTERM) != 1 || sigismember(&mask, SIGUSR1) != 1)
      saw_open_signals = true;
  }

  mutable std::mutex mutex_;
  std::array<std::size_t, kCalls> calls_{};
  std::map<std::pair<Call, std::size_t>, Fault> faults_;
  std::map<int, int> refused_flags_;
};

// Memory filled with a pattern, `shift` bytes beyond an aligned address.
class PatternMemory {
 public:
  PatternMemory(std::size_t bytes, std::uint32_t seed, std::size_t shift = 0)
      : shift_(shift),
        bytes_(bytes),
        memory_(static_cast<std::byte*>(std::aligned_alloc(
            kSpillAlignment, (bytes + shift + kSpillAlignment) / kSpillAlignment * kSpillAlignment))) {
    fill(seed);
  }
  void fill(std::uint32_t seed) {
    std::uint64_t word = seed + 1;
    for (std::size_t at = 0; at < bytes_; at += sizeof(word)) {
      word = word * 6364136223846793005u + 1442695040888963407u;
      std::memcpy(span().data() + at, &word, std::min(sizeof(word), bytes_ - at));
    }
  }
  std::span<std::byte> span() const noexcept { return {memory_.get() + shift_, bytes_}; }
  bool operator==(const PatternMemory& other) const noexcept {
    return bytes_ == other.bytes_ && std::memcmp(span().data(), other.span().data(), bytes_) == 0;
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  std::size_t shift_, bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

// The text of the Kind that `f` throws; "" and a failed test when it throws none.
template <class Kind, class F>
std::string text_of(F&& f) {
  try {
    f();
  } catch (const Kind& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another kind of error: " << error.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace plimsoll
