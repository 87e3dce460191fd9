#include "plimsoll/memory/page_map.h"

#include <algorithm>
#include <bit>

#include "plimsoll/memory/zero_pages.h"

namespace plimsoll {

PageMap::PageMap(std::size_t pages)
    : words_(static_cast<Word*>(map_zero_pages(pages / 8 + sizeof(Word), "page map"))), bytes_(pages / 8 + sizeof(Word)) {}

PageMap::~PageMap() { unmap_zero_pages(words_, bytes_); }

// Calls f(word index, mask of the bits inside) for every word that [first, last) touches.
template <class F>
void PageMap::for_words(std::size_t first, std::size_t last, F&& f) {
  while (first < last) {
    const std::size_t word = first / 64, begin = first % 64;
    const std::size_t end = std::min<std::size_t>(64, begin + (last - first));
    const Word upper = end == 64 ? ~Word{0} : (Word{1} << end) - 1;
    f(word, upper & (~Word{0} << begin));
    first += end - begin;
  }
}

std::size_t PageMap::count(std::size_t first, std::size_t last) const noexcept {
  std::size_t total = 0;
  for_words(first, last, [&](std::size_t word, Word mask) { total += static_cast<std::size_t>(std::popcount(words_[word] & mask)); });
  return total;
}

void PageMap::set(std::size_t first, std::size_t last) noexcept {
  for_words(first, last, [&](std::size_t word, Word mask) { words_[word] |= mask; });
}

void PageMap::clear(std::size_t first, std::size_t last) noexcept {
  for_words(first, last, [&](std::size_t word, Word mask) { words_[word] &= ~mask; });
}

std::size_t PageMap::next(std::size_t first, std::size_t last, Word flip) const noexcept {
  while (first < last) {
    const Word bits = (words_[first / 64] ^ flip) >> (first % 64);
    if (bits) return std::min(last, first + static_cast<std::size_t>(std::countr_zero(bits)));
    first = (first / 64 + 1) * 64;
  }
  return last;
}

std::size_t PageMap::end(std::size_t first, std::size_t last, Word flip) const noexcept {
  while (first < last) {
    const std::size_t top = (last - 1) % 64;
    const Word bits = (words_[(last - 1) / 64] ^ flip) << (63 - top);
    if (bits) return std::max(first, last - static_cast<std::size_t>(std::countl_zero(bits)));
    last = (last - 1) / 64 * 64;
  }
  return first;
}

}  // namespace plimsoll
