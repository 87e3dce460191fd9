// SlotMap: maps the ids of values to small numbers, in the order they were added. Open addressing; ids are never 0.
#pragma once

#include <cstdint>
#include <vector>

namespace plimsoll::internal {

class SlotMap {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t size() const noexcept { return size_; }
  std::size_t num_bytes() const noexcept { return places_.capacity() * sizeof(places_[0]); }

  std::uint32_t find(std::uint64_t id) const noexcept {
    if (size_ == 0) return kNone;
    for (std::size_t at = place(id);; at = (at + 1) & mask()) {
      if (places_[at].id == id) return places_[at].slot;
      if (places_[at].id == 0) return kNone;
    }
  }
  // Afterwards this many can be added without the heap.
  void make_room(std::size_t more) {
    while ((size_ + more) * 2 > places_.size()) grow();
  }
  // The number of this id, a new one if need be.
  std::uint32_t add(std::uint64_t id) {
    if ((size_ + 1) * 2 > places_.size()) grow();
    std::size_t at = place(id);
    for (; places_[at].id != 0; at = (at + 1) & mask())
      if (places_[at].id == id) return places_[at].slot;
    places_[at] = {id, size_};
    return size_++;
  }
  void clear() noexcept {
    if (size_ > 0) places_.assign(places_.size(), {});
    size_ = 0;
  }

 private:
  struct Place {
    std::uint64_t id = 0;
    std::uint32_t slot = 0;
  };
  std::size_t mask() const noexcept { return places_.size() - 1; }
  std::size_t place(std::uint64_t id) const noexcept { return (id * 0x9E3779B97F4A7C15u >> 32) & mask(); }
  void grow() {
    std::vector<Place> old(places_.empty() ? 64 : places_.size() * 2);
    old.swap(places_);
    for (const Place& entry : old) {
      if (entry.id == 0) continue;
      std::size_t at = place(entry.id);
      while (places_[at].id != 0) at = (at + 1) & mask();
      places_[at] = entry;
    }
  }

  std::vector<Place> places_;
  std::uint32_t size_ = 0;
};

}  // namespace plimsoll::internal
