// PlanCache: programs by signature; beyond a limit in bytes the least recently used is dropped first.
//
// Thread safety: any thread. Cost: a hash, and a comparison of the signature.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace plimsoll::internal {

using Signature = std::vector<std::uint64_t>;

template <class T>
class PlanCache {
 public:
  explicit PlanCache(std::size_t bound) : bound_(bound) {}

  std::shared_ptr<T> find(std::span<const std::uint64_t> signature) {
    const std::lock_guard lock(mutex_);
    if (!entries_.empty() && equal(entries_.front().signature, signature)) return entries_.front().value;
    const auto entry = locate(signature);
    if (entry == entries_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, entry);
    return entry->value;
  }

  // Returns the cached value, which may be one that another thread inserted first.
  std::shared_ptr<T> insert(std::span<const std::uint64_t> signature, std::shared_ptr<T> value, std::size_t bytes) {
    std::list<Entry> evicted;  // Ends after the lock.
    const std::lock_guard lock(mutex_);
    if (const auto known = locate(signature); known != entries_.end()) return known->value;
    entries_.push_front({Signature(signature.begin(), signature.end()), value, bytes});
    try {
      by_hash_.emplace(hash(signature), entries_.begin());
    } catch (...) {
      entries_.pop_front();
      throw;
    }
    bytes_ += bytes;
    while (bytes_ > bound_ && entries_.size() > 1) {
      const auto last = std::prev(entries_.end());
      bytes_ -= last->bytes;
      const auto [begin, end] = by_hash_.equal_range(hash(last->signature));
      for (auto place = begin; place != end; ++place)
        if (place->second == last) {
          by_hash_.erase(place);
          break;
        }
      evicted.splice(evicted.begin(), entries_, last);
    }
    return value;
  }

  // The value's size has changed. Nothing is dropped before the next insertion.
  void recount(const T& value, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    for (Entry& entry : entries_)
      if (entry.value.get() == &value) {
        bytes_ = bytes_ - entry.bytes + bytes;
        entry.bytes = bytes;
      }
  }

  void clear() {
    std::list<Entry> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(entries_);
    by_hash_.clear();
    bytes_ = 0;
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }
  std::size_t bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }
  template <class F>
  void for_each(F&& f) const {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_) f(entry.value);
  }

 private:
  struct Entry {
    Signature signature;
    std::shared_ptr<T> value;
    std::size_t bytes;
  };
  static bool equal(const Signature& a, std::span<const std::uint64_t> b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
  }

  static std::uint64_t hash(std::span<const std::uint64_t> signature) {
    std::uint64_t hash = 0x9E3779B97F4A7C15u;
    for (const std::uint64_t word : signature) hash = (hash ^ word) * 0xFF51AFD7ED558CCDu ^ hash >> 32;
    return hash;
  }
  typename std::list<Entry>::iterator locate(std::span<const std::uint64_t> signature) {
    const auto [begin, end] = by_hash_.equal_range(hash(signature));
    for (auto place = begin; place != end; ++place)
      if (equal(place->second->signature, signature)) return place->second;
    return entries_.end();
  }

  const std::size_t bound_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // Most recently used first. Guarded by mutex_, like the next.
  std::unordered_multimap<std::uint64_t, typename std::list<Entry>::iterator> by_hash_;
  std::size_t bytes_ = 0;
};

}  // namespace plimsoll::internal
