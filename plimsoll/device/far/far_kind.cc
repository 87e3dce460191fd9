#include "plimsoll/device/far/far_kind.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/host_backend.h"
#include "plimsoll/memory/system_memory.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kAlignment = 2_MiB;
constexpr std::size_t kPageBytes = 4_KiB;

[[noreturn]] void refuse(const char* what, std::size_t bytes) {
  OutOfMemoryDetails details;
  details.what = std::string("far device: ") + what + " of " + format_bytes(bytes) + " failed; lower its limit";
  throw OutOfMemory(std::move(details));
}

// Addresses aligned to 2 MiB, without access rights; with what lies around them.
class Reservation {
 public:
  explicit Reservation(std::size_t bytes) : bytes_(bytes + kAlignment) {
    whole_ = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (whole_ == MAP_FAILED) refuse("a reservation", bytes);
    const auto address = reinterpret_cast<std::uintptr_t>(whole_);
    base_ = static_cast<std::byte*>(whole_) + ((address + kAlignment - 1) / kAlignment * kAlignment - address);
  }
  ~Reservation() { munmap(whole_, bytes_); }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  std::byte* base() const noexcept { return base_; }

 private:
  std::size_t bytes_;
  void* whole_;
  std::byte* base_;
};

// A file in memory, mapped at a place of its own.
class MappedFile {
 public:
  explicit MappedFile(std::size_t bytes) : here_(bytes) {
    file_ = memfd_create("plimsoll-far", MFD_CLOEXEC);
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes)) != 0 ||
        mmap(here_.base(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file_, 0) ==
            MAP_FAILED) {
      if (file_ >= 0) close(file_);
      refuse("a memory file", bytes);
    }
  }
  ~MappedFile() { close(file_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::byte* base() const noexcept { return here_.base(); }
  bool release(std::size_t offset, std::size_t bytes) const noexcept {
    return fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                     static_cast<off_t>(bytes)) == 0;
  }

 private:
  Reservation here_;
  int file_;
};

struct FarMemory {
  explicit FarMemory(std::size_t size) : bytes(size), there(size), here(size) {}
  const std::size_t bytes;
  const Reservation there;  // The arena's addresses.
  const MappedFile here;
};

class FarRange final : public PageRange {
 public:
  explicit FarRange(const FarMemory& memory) : PageRange(memory.there.base(), memory.bytes), memory_(memory) {}
  bool commit(std::size_t, std::size_t) noexcept override { return true; }
  bool release(std::size_t offset, std::size_t bytes) noexcept override { return memory_.here.release(offset, bytes); }

 private:
  const FarMemory& memory_;
};

class FarBackend final : public DeviceBackend, private PageSource {
 public:
  explicit FarBackend(bool staged) : staged_(staged) {}
  using DeviceBackend::host_address;

  PageSource& pages() noexcept override { return *this; }
  bool is_reachable() const noexcept override { return !staged_; }
  std::byte* host_address(void* address) const noexcept override {
    auto* const byte = static_cast<std::byte*>(address);
    if (!memory_ || byte < memory_->there.base() || byte >= memory_->there.base() + memory_->bytes) return byte;
    return memory_->here.base() + (byte - memory_->there.base());
  }
  void copy_in(void* to, const void* from, std::size_t bytes) noexcept override {
    count_in(bytes);
    if (bytes > 0) std::memcpy(host_address(to), from, bytes);
  }
  void copy_out(void* to, const void* from, std::size_t bytes) override {
    count_out(bytes);
    count_wait();
    if (bytes > 0) std::memcpy(to, host_address(from), bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) noexcept override {
    if (bytes > 0) std::memcpy(host_address(to), host_address(from), bytes);
  }
  void fill(void* to, std::uint64_t pattern, std::size_t element_bytes, std::size_t bytes) noexcept override {
    fill_on_host(host_address(to), pattern, element_bytes, bytes);
  }
  void finish() override { count_wait(); }
  std::string description() const override { return "memory that nobody may look at, for tests"; }

 private:
  std::size_t page_bytes() const noexcept override { return kPageBytes; }
  std::size_t range_bytes(std::size_t limit) const noexcept override { return 4 * limit; }
  std::unique_ptr<PageRange> reserve(std::size_t wanted, std::size_t) override {
    memory_ = std::make_unique<FarMemory>(wanted);
    return std::make_unique<FarRange>(*memory_);
  }

  const bool staged_;
  std::unique_ptr<FarMemory> memory_;
};

template <bool kStaged>
std::unique_ptr<DeviceBackend> make_far(const PhysicalDevice&) {
  return std::make_unique<FarBackend>(kStaged);
}

}  // namespace

DeviceKind far_kind(bool staged) {
  return {.name = "far",
          .types = {"FAR"},
          .find = []() -> std::vector<PhysicalDevice> {
            return {{"FAR:0", "FAR", std::min<std::size_t>(read_system_memory().capacity() / 2, 64_GiB)}};
          },
          .make = staged ? make_far<true> : make_far<false>};
}

}  // namespace plimsoll::internal
