// FakePageSource: pages of a test. It knows which are there, can refuse, can move only in part, and notes every wrong
// call.
//
//   FakePageSource pages({.page_bytes = 256, .range_factor = 16});
//   Arena arena(pages, {.limit = 1_MiB});
//   pages.range().refuse_commit_after(3);    // the fourth commit from now on is refused, once
//
// Pages that come are filled with garbage and pages that go are overwritten, so a live block that loses one shows it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "plimsoll/memory/pages/page_source.h"

namespace plimsoll {

enum class FakeMoves { kAll, kNone, kHalf };  // How much of each move is done; kHalf does the first half.

struct FakePagesOptions {
  std::size_t page_bytes = 4096;
  std::size_t range_factor = 16;  // Of the limit.
  FakeMoves moves = FakeMoves::kAll;
  std::size_t base_offset = 0;  // Added to a base aligned to 2 MiB.
};

class FakePageRange final : public PageRange {
 public:
  FakePageRange(std::size_t bytes, const FakePagesOptions& options);
  ~FakePageRange() override;

  bool commit(std::size_t offset, std::size_t bytes) noexcept override;
  bool release(std::size_t offset, std::size_t bytes) noexcept override;
  std::size_t move(std::size_t from, std::size_t to, std::size_t bytes) noexcept override;

  void refuse_commit_after(std::size_t commits) noexcept { served_before_refusal_ = commits; }
  void refuse_commits(bool all) noexcept { refuse_all_ = all; }
  void keep_pages(bool all) noexcept { keep_all_ = all; }  // release() fails.
  bool refusal_pending() const noexcept { return served_before_refusal_ != kNever; }

  std::size_t present() const noexcept { return present_count_; }  // Pages that are there.
  std::size_t most_present() const noexcept { return most_present_; }
  std::size_t wrong_calls() const noexcept { return wrong_calls_; }
  std::size_t commits() const noexcept { return commits_; }
  std::size_t moves() const noexcept { return moves_; }
  std::size_t releases() const noexcept { return releases_; }

 private:
  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);
  void expect(std::size_t offset, std::size_t bytes, bool there) noexcept;
  void set(std::size_t offset, std::size_t bytes, bool there) noexcept;

  const FakePagesOptions options_;
  std::vector<bool> there_;
  std::size_t present_count_ = 0, most_present_ = 0, wrong_calls_ = 0;
  std::size_t commits_ = 0, moves_ = 0, releases_ = 0;
  std::size_t served_before_refusal_ = kNever;
  bool refuse_all_ = false, keep_all_ = false;
};

class FakePageSource final : public PageSource {
 public:
  explicit FakePageSource(const FakePagesOptions& options = {}) : options_(options) {}

  std::size_t page_bytes() const noexcept override { return options_.page_bytes; }
  std::size_t range_bytes(std::size_t limit) const noexcept override { return limit * options_.range_factor; }
  std::unique_ptr<PageRange> reserve(std::size_t wanted, std::size_t least) override;

  FakePageRange& range() noexcept { return *last_; }  // The one reserved last.

 private:
  const FakePagesOptions options_;
  FakePageRange* last_ = nullptr;
};

}  // namespace plimsoll
