#include "plimsoll/tensor/provenance.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "plimsoll/base/rounding.h"

namespace plimsoll {
namespace {

constexpr std::size_t kPerPage = 512, kPages = 2048;

struct Hash {
  std::size_t operator()(const Provenance& made) const noexcept {
    const auto mix = [](std::size_t hash, std::size_t value) { return (hash ^ value) * 0x9e3779b97f4a7c15u; };
    const std::hash<const char*> address;
    return mix(mix(mix(0, address(made.op)), address(made.scope)), made.site);
  }
};

using Page = std::array<Provenance, kPerPage>;

struct Table {
  std::mutex mutex;
  std::unordered_map<Provenance, std::uint32_t, Hash> numbers;  // Guarded by the mutex.
  std::array<std::atomic<Page*>, kPages> pages{};
  std::atomic<std::size_t> size{1};  // Number 0 says nothing.

  static Table& instance() {
    static auto* table = new Table;  // Never destroyed.
    return *table;
  }
};

}  // namespace

std::uint32_t Provenance::number_of(const Provenance& provenance) {
  Table& table = Table::instance();
  const std::lock_guard lock(table.mutex);
  if (const auto known = table.numbers.find(provenance); known != table.numbers.end()) return known->second;
  const std::size_t number = table.size.load(std::memory_order_relaxed);
  if (number >= kPerPage * kPages) return 0;
  std::atomic<Page*>& place = table.pages[number / kPerPage];
  Page* page = place.load(std::memory_order_relaxed);
  if (!page) {
    page = std::make_unique<Page>().release();
    place.store(page, std::memory_order_release);
  }
  table.numbers.emplace(provenance, static_cast<std::uint32_t>(number));
  (*page)[number % kPerPage] = provenance;
  table.size.store(number + 1, std::memory_order_relaxed);
  return static_cast<std::uint32_t>(number);
}

const Provenance& Provenance::of(std::uint32_t number) noexcept {
  static constexpr Provenance kUnknown;
  if (number == 0) return kUnknown;
  return (*Table::instance().pages[number / kPerPage].load(std::memory_order_acquire))[number % kPerPage];
}

std::size_t Provenance::num_bytes() noexcept {
  const std::size_t size = Table::instance().size.load(std::memory_order_relaxed);
  constexpr std::size_t kNode = sizeof(Provenance) + 32;  // In the hash table.
  return sizeof(Table) + divide_up(size, kPerPage) * sizeof(Page) + size * kNode;
}

}  // namespace plimsoll
