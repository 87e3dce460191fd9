#include "plimsoll/memory/pages/page_map.h"

#include <algorithm>
#include <bit>

#include "plimsoll/memory/pages/zero_pages.h"

namespace plimsoll::internal {

PageMap::PageMap(std::size_t pages)
    : words_(static_cast<Word*>(map_zero_pages(pages / 8 + sizeof(Word), "page map"))),
      bytes_(pages / 8 + sizeof(Word)) {}

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

namespace {

// Without a hint the compiler calls a library function for each word: the instruction is not in the oldest processors.
#if defined(__x86_64__)
__attribute__((target("popcnt"))) std::size_t count_with_instruction(const std::uint64_t* words, std::size_t n) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < n; ++i) total += static_cast<std::size_t>(__builtin_popcountll(words[i]));
  return total;
}
#endif

std::size_t count_words(const std::uint64_t* words, std::size_t n) {
#if defined(__x86_64__)
  static const bool kHasInstruction = __builtin_cpu_supports("popcnt");
  if (kHasInstruction) return count_with_instruction(words, n);
#endif
  std::size_t total = 0;
  for (std::size_t i = 0; i < n; ++i) total += static_cast<std::size_t>(std::popcount(words[i]));
  return total;
}

}  // namespace

std::size_t PageMap::count(std::size_t first, std::size_t last) const noexcept {
  if (first >= last) return 0;
  const std::size_t begin = first / 64, end = (last - 1) / 64;
  const Word head = ~Word{0} << (first % 64), tail = ~Word{0} >> (63 - (last - 1) % 64);
  Word rims[2] = {words_[begin] & head, words_[end] & tail};
  if (begin == end) rims[0] &= rims[1], rims[1] = 0;
  return count_words(rims, 2) + (end - begin > 1 ? count_words(words_ + begin + 1, end - begin - 1) : 0);
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

}  // namespace plimsoll::internal
