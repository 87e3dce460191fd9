#include "plimsoll/distributed/shard_store.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/distributed/collectives.h"

namespace plimsoll::distributed {
namespace {

using internal::round_up;

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMostAtOnce = std::size_t{1} << 26;  // Of a message.

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// Calls f(first, bytes) for the messages of a stretch.
template <class F>
void visit_messages(std::size_t bytes, F&& f) {
  for (std::size_t first = 0; first < bytes; first += kMostAtOnce) f(first, std::min(kMostAtOnce, bytes - first));
}

}  // namespace

ShardStore::ShardStore(Job& job, const FlatSpace& space, std::size_t num_parts)
    : job_(job), pieces_(num_parts), own_(num_parts) {
  for (int rank = 0; rank < job.size(); ++rank)
    space.visit_own(rank, [&](std::size_t part, std::size_t first, std::size_t bytes) {
      if (part < num_parts) pieces_[part].push_back({rank, first, bytes});
    });
  for (std::size_t part = 0; part < num_parts; ++part) {
    asks_.push_back({.part = static_cast<std::uint32_t>(part)});
    for (const Piece& piece : pieces_[part])
      if (piece.rank == job.rank()) own_[part] = {piece.first, piece.bytes, nullptr};
  }
  asks_.push_back({.is_last = 1});
  asked_.resize(static_cast<std::size_t>(job.size()));
  incoming_.resize(static_cast<std::size_t>(job.size()));
}

ShardStore::~ShardStore() {
  if (is_open_) job_.set_while_waiting({});
}

std::size_t ShardStore::own_bytes(const FlatSpace& space, std::size_t num_parts, int rank) {
  std::size_t all = 0;
  space.visit_own(rank, [&](std::size_t part, std::size_t, std::size_t bytes) {
    if (part < num_parts) all += round_up(bytes, kAlignment);
  });
  return all;
}

void ShardStore::set_memory(std::byte* own) noexcept {
  for (Stretch& stretch : own_) {
    stretch.memory = own;
    own += round_up(stretch.bytes, kAlignment);
  }
}

void ShardStore::open() {
  is_open_ = true;
  for (std::size_t peer = 0; peer < incoming_.size(); ++peer)
    if (static_cast<int>(peer) != job_.rank()) listen(peer);
  job_.set_while_waiting([this] { serve(); });
}

void ShardStore::listen(std::size_t peer) {
  incoming_[peer] = {
      job_.receive(static_cast<int>(peer), Job::kRequestTag, std::as_writable_bytes(std::span(&asked_[peer], 1)))};
}

void ShardStore::begin_fetch(std::size_t part, std::byte* to) {
  for (const Piece& piece : pieces_[part]) {
    if (piece.rank == job_.rank()) {
      std::memcpy(to + piece.first, own_[part].memory, piece.bytes);
      continue;
    }
    visit_messages(piece.bytes, [&](std::size_t first, std::size_t bytes) {
      pending_.push_back(job_.receive(piece.rank, Job::kReplyTag, {to + piece.first + first, bytes}));
    });
    pending_.push_back(job_.send(piece.rank, Job::kRequestTag, bytes_of(asks_[part])));
  }
}

void ShardStore::wait() {
  job_.wait(pending_, "parameters");
  pending_.clear();
}

void ShardStore::serve() {
  if (is_changing_) return;
  for (std::size_t peer = 0; peer < incoming_.size(); ++peer)
    while (!incoming_[peer].empty() && job_.are_done(incoming_[peer], "requests")) {
      const Request asked = asked_[peer];
      if (asked.is_last != 0) break;  // It has closed, and this rank is about to.
      PLIMSOLL_CHECK(asked.part < own_.size());
      const Stretch& own = own_[asked.part];
      visit_messages(own.bytes, [&](std::size_t first, std::size_t bytes) {
        answers_.push_back(job_.send(static_cast<int>(peer), Job::kReplyTag, {own.memory + first, bytes}));
      });
      listen(peer);
    }
  job_.are_done(answers_, "parameters");
}

void ShardStore::begin_change() {
  is_changing_ = true;
  job_.wait(answers_, "parameters");
  answers_.clear();
}

void ShardStore::close() {
  if (!is_open_) return;
  is_open_ = false;
  if (job_.is_open()) barrier(job_);  // Until all have come, it answers them.
  job_.set_while_waiting({});
  if (!job_.is_open()) return;
  for (std::size_t peer = 0; peer < incoming_.size(); ++peer) {
    if (static_cast<int>(peer) == job_.rank()) continue;
    answers_.push_back(job_.send(static_cast<int>(peer), Job::kRequestTag, bytes_of(asks_.back())));
    answers_.insert(answers_.end(), incoming_[peer].begin(), incoming_[peer].end());
  }
  job_.wait(answers_, "its end");
  answers_.clear();
}

}  // namespace plimsoll::distributed
