#include "plimsoll/memory/internal/request_log.h"

#include <algorithm>
#include <bit>

#include "plimsoll/memory/chunk.h"

// A word is 3 bits of kind, followed for kGive by 29 bits of a block's number, or for a request by 4 bits of alignment,
// a bit that says that a second word has the upper bits of the size, and 24 bits of the size in units of 64 bytes.

namespace plimsoll::internal {
namespace {

constexpr unsigned kKindShift = 29, kAlignmentShift = 25, kSizeBits = 24;
constexpr std::uint32_t kWide = std::uint32_t{1} << kSizeBits, kSizeMask = kWide - 1;

}  // namespace

bool RequestLog::push(std::uint32_t word) {
  if (words_.size() >= kMostWords) return false;
  if (words_.empty()) words_.reserve(kMostWords);  // Once: later requests take nothing from the heap.
  words_.push_back(word);
  return true;
}

bool RequestLog::add_request(LoggedRequest::Kind kind, std::size_t size, std::size_t alignment) {
  const std::size_t units = size / kGranularity;
  const auto log_alignment = static_cast<std::uint32_t>(std::countr_zero(alignment / kGranularity));
  const bool wide = units > kSizeMask;
  return push(std::uint32_t{kind} << kKindShift | log_alignment << kAlignmentShift | (wide ? kWide : 0) |
              static_cast<std::uint32_t>(units & kSizeMask)) &&
         (!wide || push(static_cast<std::uint32_t>(units >> kSizeBits)));
}

bool RequestLog::add_take(std::size_t size, std::size_t alignment, std::uint64_t block_id) {
  if (ids_.empty() || block_id != ids_.back().first + ids_.back().count) ids_.push_back({block_id, takes_, 0});
  ++ids_.back().count;
  ++takes_;
  return add_request(LoggedRequest::kTake, size, alignment);
}

bool RequestLog::add_refused(std::size_t size, std::size_t alignment) {
  return add_request(LoggedRequest::kRefused, size, alignment);
}

bool RequestLog::add_give(std::uint64_t block_id) {
  const auto ids = std::find_if(ids_.rbegin(), ids_.rend(), [&](const Ids& some) {
    return block_id >= some.first && block_id - some.first < some.count;
  });
  if (ids == ids_.rend()) return false;
  const std::size_t take = ids->first_take + static_cast<std::size_t>(block_id - ids->first);
  return push(std::uint32_t{LoggedRequest::kGive} << kKindShift | static_cast<std::uint32_t>(take));
}

bool RequestLog::add(LoggedRequest::Kind kind) { return push(std::uint32_t{kind} << kKindShift); }

LoggedRequest RequestLog::read(std::size_t& at) const noexcept {
  const std::uint32_t word = words_[at++];
  LoggedRequest request{.kind = static_cast<LoggedRequest::Kind>(word >> kKindShift)};
  if (request.kind == LoggedRequest::kGive) request.which = word & ((std::uint32_t{1} << kKindShift) - 1);
  if (request.kind == LoggedRequest::kTake || request.kind == LoggedRequest::kRefused) {
    request.size = word & kSizeMask;
    if (word & kWide && at < words_.size()) request.size |= std::size_t{words_[at++]} << kSizeBits;
    request.size *= kGranularity;
    request.alignment = kGranularity << (word >> kAlignmentShift & 15);
  }
  return request;
}

}  // namespace plimsoll::internal
