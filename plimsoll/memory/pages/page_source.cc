#include "plimsoll/memory/pages/page_source.h"

namespace plimsoll {

PageRange::~PageRange() = default;
PageSource::~PageSource() = default;

std::size_t PageRange::move(std::size_t, std::size_t, std::size_t) noexcept { return 0; }

bool PageRange::places_blocks() const noexcept { return false; }
bool PageRange::place(std::size_t, std::size_t) noexcept { return true; }
void PageRange::remove(std::size_t) noexcept {}

std::string PageRange::mover() const { return "none"; }

std::string PageRange::note() const { return ""; }

void PageRange::after_fork() noexcept {}

}  // namespace plimsoll
