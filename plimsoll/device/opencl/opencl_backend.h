// OpenclBackend: one logical device of OpenCL: segments for its memory, a queue in order, and kernels built on first
// use.
//
// An address is the arena's base, which has no access rights, plus an offset; each block has a place in a segment
// (segments.h), which is a buffer of the driver, and kernels get that buffer and the offset in it. Blocks may be moved
// to other places, in the queue's order, while their addresses stay: so nothing is pinned. Thread safety: any thread;
// one lock orders what is submitted; it is taken after the arena's.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "plimsoll/device/backend.h"
#include "plimsoll/device/opencl/opencl_api.h"
#include "plimsoll/device/opencl/segments.h"

namespace plimsoll::internal {

// What is known about a device before it is used.
struct OpenclDevice {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  bool is_gpu = false, is_processor = false;
  bool has_local_memory = false;  // Of its own: kernels that use it are faster.
  std::string name, driver;
  std::size_t memory_bytes = 0, most_bytes = 0;  // Of all buffers, of one.
  std::size_t most_group = 1, units = 1;
};

class OpenclBackend final : public DeviceBackend, private PageSource, private KernelQueue, private Segments::Memory {
 public:
  OpenclBackend(const OpenclApi& cl, const OpenclDevice& device, std::string name);
  ~OpenclBackend() override;
  using DeviceBackend::host_address;

  PageSource& pages() noexcept override { return *this; }
  bool is_reachable() const noexcept override { return false; }
  std::byte* host_address(void* address) const noexcept override { return static_cast<std::byte*>(address); }
  void copy_in(void* to, const void* from, std::size_t bytes) noexcept override;
  void copy_out(void* to, const void* from, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) noexcept override;
  void fill(void* to, std::uint64_t pattern, std::size_t element_bytes, std::size_t bytes) noexcept override;
  void finish() override;
  KernelQueue* kernels() noexcept override { return this; }
  std::string description() const override { return device_.name + ", " + device_.driver; }

  std::size_t segment_bytes() const;  // That the driver has given.
  // For tests: the device behaves as if this had failed.
  void fail_for_testing(const std::string& why) noexcept;

 private:
  class Range;
  struct Where {
    cl_mem buffer = nullptr;
    std::size_t offset = 0;
  };
  struct Kernel {
    cl_program program = nullptr;
    cl_kernel kernel = nullptr;
    bool has_run = false, has_run_grouped = false;
  };

  std::size_t page_bytes() const noexcept override;
  std::size_t range_bytes(std::size_t limit) const noexcept override;
  std::unique_ptr<PageRange> reserve(std::size_t wanted, std::size_t least) override;
  bool run(const KernelCall& call) noexcept override;
  bool has(std::string_view kernel) const noexcept override;
  std::size_t num_processors() const noexcept override { return device_.is_processor ? device_.units : 0; }
  std::uint32_t take_word() noexcept override;
  void give_word(std::uint32_t word) noexcept override;
  bool check_indices(std::uint32_t word, std::uint32_t check, const ConstTensorView& indices,
                     std::int64_t size) noexcept override;
  RefusedIndex read_word(std::uint32_t word) override;

  // All below require the lock.
  bool begin() noexcept;  // Makes context and queue. False, remembering why, when it fails.
  bool make_segment(std::size_t segment, std::size_t bytes) noexcept override;
  void drop_segment(std::size_t segment) noexcept override;
  void copy(Segments::Place to, Segments::Place from, std::size_t bytes) noexcept override;
  bool is_usable() noexcept;                          // Has not failed.
  bool note(cl_int code, const char* what) noexcept;  // True when it is a success; else remembers it.
  void is_empty() noexcept { in_flight_ = unflushed_ = staged_used_ = 0; }       // The queue, after a wait.
  bool stage_in(const Where& to, const void* from, std::size_t bytes) noexcept;  // False: it is too much at once.
  void submitted() noexcept;     // One more command; starts them now and then, and bounds how many wait.
  void require_working() const;  // Throws what was remembered.
  bool make_words() noexcept;
  void clear_word(std::uint32_t word) noexcept;
  Kernel* kernel_of(std::string_view name) noexcept;  // nullptr: it does not build, which is remembered.
  Kernel build(std::string_view name);
  Where where(const void* address) const noexcept;

  const OpenclApi& cl_;
  const OpenclDevice device_;
  const std::string name_;
  mutable std::mutex mutex_;
  std::string failure_;  // Empty while it works.
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  std::byte* base_ = nullptr;
  std::unique_ptr<Segments> segments_;
  std::vector<cl_mem> buffers_;  // Of segments, by number; null: there is none.
  std::size_t in_flight_ = 0, unflushed_ = 0;
  // Small copies from the host wait here for their turn, so that nobody waits for them. Bytes before `staged_used_` are
  // in use until the queue is empty.
  std::unique_ptr<std::byte[]> staged_;
  std::size_t staged_used_ = 0;
  std::unordered_map<std::string, Kernel> kernels_;
  // Of checks: a buffer of its own, made with the first.
  cl_mem words_ = nullptr;
  std::vector<std::uint32_t> spare_words_;  // Nothing is in them.
};

}  // namespace plimsoll::internal
