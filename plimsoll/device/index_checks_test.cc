#include "plimsoll/device/index_checks.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

// A device that checks when it is asked for a word, as late as it may.
class SlowQueue final : public KernelQueue {
 public:
  bool run(const KernelCall&) noexcept override { return false; }
  bool has(std::string_view) const noexcept override { return false; }
  std::uint32_t take_word() noexcept override {
    ++taken;
    return has_words ? 3 : kNoWord;
  }
  void give_word(std::uint32_t) noexcept override { --taken; }
  bool check_indices(std::uint32_t, std::uint32_t check, const ConstTensorView& indices,
                     std::int64_t size) noexcept override {
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(indices.size()); ++i) {
      const std::int64_t index = indices.data<std::int64_t>()[i];
      if (found.check == 0 && (index < 0 || index >= size)) found = {check, i, index};
    }
    return size < 1000;
  }
  RefusedIndex read_word(std::uint32_t) override {
    ++waits;
    if (is_lost) throw Error("lost");
    return std::exchange(found, {});
  }

  bool has_words = true, is_lost = false;
  int taken = 0, waits = 0;
  RefusedIndex found;
};

class SlowBackend final : public DeviceBackend, private PageSource {
 public:
  using DeviceBackend::host_address;
  PageSource& pages() noexcept override { return *this; }
  bool is_reachable() const noexcept override { return false; }
  std::byte* host_address(void* address) const noexcept override { return static_cast<std::byte*>(address); }
  void copy_in(void*, const void*, std::size_t) noexcept override {}
  void copy_out(void*, const void*, std::size_t) override {}
  void copy(void*, const void*, std::size_t) noexcept override {}
  void fill(void*, std::uint64_t, std::size_t, std::size_t) noexcept override {}
  void finish() override {}
  KernelQueue* kernels() noexcept override { return &queue; }

  SlowQueue queue;

 private:
  std::size_t page_bytes() const noexcept override { return 4096; }
  std::unique_ptr<PageRange> reserve(std::size_t, std::size_t) override { return nullptr; }
};

IndexRule rule(std::int64_t size, const char* where = "gather") {
  const auto text = [](const IndexRule& of, const Shape& indices, std::int64_t position, std::int64_t index) {
    return std::string(of.where) + " " + indices.to_string() + " " + std::to_string(position) + " " +
           std::to_string(index);
  };
  return {.size = size, .where = where, .text = text};
}

class IndexChecksTest : public testing::Test {
 protected:
  bool defer(const std::vector<std::int64_t>& indices, const IndexRule& by) {
    return checks_->defer(by, ConstTensorView(indices.data(), 0, i64, Shape({indices.size()})));
  }
  std::string settled() {
    try {
      checks_->settle();
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  }

  SlowBackend backend_;
  std::optional<IndexChecks> checks_{backend_};
};

TEST_F(IndexChecksTest, TheFirstRefusedIndexIsThrownOnce) {
  EXPECT_FALSE(checks_->is_pending());
  EXPECT_TRUE(defer({0, 4}, rule(5)));
  EXPECT_TRUE(defer({0, 4, 5, 6}, rule(5, "embedding")));
  EXPECT_TRUE(defer({-1}, rule(5)));
  EXPECT_EQ(backend_.queue.waits, 0);
  EXPECT_TRUE(checks_->is_pending());
  EXPECT_EQ(settled(), "embedding [4] 2 5");
  EXPECT_FALSE(checks_->is_pending());
  EXPECT_EQ(settled(), "");
  EXPECT_EQ(backend_.queue.waits, 1);
  EXPECT_TRUE(defer({1}, rule(5)));
  EXPECT_EQ(settled(), "");
}

TEST_F(IndexChecksTest, WhatCannotBeCheckedThereIsLeftToTheHost) {
  EXPECT_FALSE(defer({0}, rule(1000)));
  EXPECT_FALSE(checks_->is_pending());
  EXPECT_TRUE(defer({}, rule(5)));
  EXPECT_FALSE(checks_->is_pending());
  checks_.emplace(backend_);
  EXPECT_EQ(backend_.queue.taken, 0);
  backend_.queue.has_words = false;
  EXPECT_FALSE(defer({0}, rule(5)));
  backend_.queue.taken = 0;
}

TEST_F(IndexChecksTest, AnotherThreadAndTheOneWhoseIndexItWasAreTold) {
  EXPECT_TRUE(defer({7}, rule(5)));
  std::string there, there_again;
  std::thread other([&] {
    there = settled();
    there_again = settled();
  });
  other.join();
  EXPECT_EQ(there, "gather [1] 0 7");
  EXPECT_EQ(there_again, "");
  EXPECT_TRUE(checks_->is_pending());
  EXPECT_EQ(settled(), "gather [1] 0 7");
  EXPECT_FALSE(checks_->is_pending());
  EXPECT_EQ(settled(), "");
}

TEST_F(IndexChecksTest, TheyAreBounded) {
  for (int i = 0; i < 2000; ++i) EXPECT_TRUE(defer({1}, rule(5)));
  EXPECT_EQ(backend_.queue.waits, 3);
  EXPECT_TRUE(defer({9}, rule(5)));
  EXPECT_EQ(settled(), "gather [1] 0 9");
}

TEST_F(IndexChecksTest, ALostDeviceThrowsEveryTime) {
  EXPECT_TRUE(defer({1}, rule(5)));
  backend_.queue.is_lost = true;
  for (int i = 0; i < 3; ++i) EXPECT_THROW(checks_->settle(), Error);
  EXPECT_TRUE(checks_->is_pending());
}

}  // namespace
}  // namespace plimsoll::internal
