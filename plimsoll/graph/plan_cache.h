// PlanCache: programs by signature, the least recently used going first when they are more than a bound in bytes.
//
// Thread safety: any thread. Cost: a hash, and a comparison of the signature.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace plimsoll {

using Signature = std::vector<std::uint64_t>;

template <class T>
class PlanCache {
 public:
  explicit PlanCache(std::size_t bound) : bound_(bound) {}

  std::shared_ptr<T> find(std::span<const std::uint64_t> signature) {
    const std::lock_guard lock(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (!equal(entry->signature, signature)) continue;
      if (entry != entries_.begin()) entries_.splice(entries_.begin(), entries_, entry);
      return entry->value;
    }
    return nullptr;
  }

  // Gives what is in the cache: the one that another thread put there first, if so.
  std::shared_ptr<T> insert(std::span<const std::uint64_t> signature, std::shared_ptr<T> value, std::size_t bytes) {
    std::list<Entry> evicted;  // Ends after the lock.
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_)
      if (equal(entry.signature, signature)) return entry.value;
    entries_.push_front({Signature(signature.begin(), signature.end()), value, bytes});
    bytes_ += bytes;
    while (bytes_ > bound_ && entries_.size() > 1) {
      bytes_ -= entries_.back().bytes;
      evicted.splice(evicted.begin(), entries_, std::prev(entries_.end()));
    }
    return value;
  }

  void clear() {
    std::list<Entry> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(entries_);
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
    for (const Entry& entry : entries_) f(*entry.value);
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

  const std::size_t bound_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // Lately used first. Guarded by mutex_, as the next.
  std::size_t bytes_ = 0;
};

}  // namespace plimsoll
