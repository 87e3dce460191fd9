#include "plimsoll/device/opencl/opencl_backend.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/device/opencl/kernel_sources.h"
#include "plimsoll/device/opencl/program_cache.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kPageBytes = 4_KiB, kAlignment = 2_MiB;
constexpr std::size_t kAddressesPerByte = 4;  // Of the limit: so that there is always a hole among the addresses.
constexpr std::size_t kSegments = 8, kLeastSegment = 1_MiB, kMostSegment = 256_MiB;  // So many of the limit's size.
constexpr std::size_t kFlushEvery = 16;      // Commands that wait to be started.
constexpr std::size_t kMostInFlight = 512;   // Then the caller waits for those before.
constexpr std::size_t kGroupItems = 32;      // Of kernels over one axis, on processors.
constexpr std::size_t kStagedBytes = 1_MiB;  // Of the host, for small copies on their way.
constexpr std::uint32_t kWords = 256;        // One for each run under way, and one for all that is not in a run.
constexpr std::size_t kCheckItems = 64;      // As in the kernel.

using Word = std::array<std::uint32_t, 4>;  // Check, position, index; as in the kernel.

// How a call is run.
struct Form {
  std::string kernel;
  std::array<std::size_t, 3> items, group;
};

// Items of the form in registers have 4 x 16 results.
void use_local_memory(Form& form) {
  if (!form.kernel.starts_with("matmul.")) return;
  form.kernel.replace(0, 6, "matmul_local");
  form.items = {form.items[0] * 16, (form.items[1] * 4 + 15) / 16 * 16, form.items[2]};
  form.group = {16, 16, 1};
}

// PoCL compiles a kernel again for each size of a group, and chooses sizes by shape. Items of one axis are many and
// short: kernels leave those alone that are too many.
void choose_groups(Form& form) {
  if (form.group[0] > 0) return;
  const bool is_line = form.items[1] * form.items[2] == 1 && form.items[0] >= 2 * kGroupItems;
  form.group = {is_line ? kGroupItems : 1, 1, 1};
  form.items[0] = divide_up(form.items[0], form.group[0]) * form.group[0];
}

}  // namespace

// Addresses without access rights. Pages are only counted.
class OpenclBackend::Range final : public PageRange {
 public:
  static std::unique_ptr<Range> make(OpenclBackend& backend, std::size_t bytes) {
    void* const whole =
        mmap(nullptr, bytes + kAlignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (whole == MAP_FAILED) return nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(whole);
    auto* const base =
        static_cast<std::byte*>(whole) + ((address + kAlignment - 1) / kAlignment * kAlignment - address);
    return std::unique_ptr<Range>(new Range(backend, whole, base, bytes));
  }
  ~Range() override { munmap(whole_, bytes() + kAlignment); }

  bool commit(std::size_t, std::size_t) noexcept override { return true; }
  bool release(std::size_t, std::size_t) noexcept override {
    const std::lock_guard lock(backend_.mutex_);
    if (!OpenclApi::is_forked()) backend_.segments_->give_empty();
    return true;
  }
  std::size_t move(std::size_t, std::size_t, std::size_t bytes) noexcept override { return bytes; }
  std::string mover() const override { return "copies of blocks"; }
  bool places_blocks() const noexcept override { return true; }
  bool place(std::size_t offset, std::size_t bytes) noexcept override {
    const std::lock_guard lock(backend_.mutex_);
    return backend_.begin() && backend_.segments_->place(offset, bytes);
  }
  void remove(std::size_t offset) noexcept override {
    const std::lock_guard lock(backend_.mutex_);
    backend_.segments_->remove(offset);
  }

 private:
  Range(OpenclBackend& backend, void* whole, std::byte* base, std::size_t bytes)
      : PageRange(base, bytes), backend_(backend), whole_(whole) {}
  OpenclBackend& backend_;
  void* const whole_;
};

OpenclBackend::OpenclBackend(const OpenclApi& cl, const OpenclDevice& device, std::string name)
    : cl_(cl), device_(device), name_(std::move(name)) {}

OpenclBackend::~OpenclBackend() {
  if (OpenclApi::is_forked()) return;
  if (queue_) cl_.clFinish(queue_);
  for (auto& [name, kernel] : kernels_) {
    if (kernel.kernel) cl_.clReleaseKernel(kernel.kernel);
    if (kernel.program) cl_.clReleaseProgram(kernel.program);
  }
  for (const cl_mem buffer : buffers_)
    if (buffer) cl_.clReleaseMemObject(buffer);
  if (words_) cl_.clReleaseMemObject(words_);
  if (queue_) cl_.clReleaseCommandQueue(queue_);
  if (context_) cl_.clReleaseContext(context_);
}

std::size_t OpenclBackend::page_bytes() const noexcept { return kPageBytes; }
std::size_t OpenclBackend::range_bytes(std::size_t limit) const noexcept { return kAddressesPerByte * limit; }

std::unique_ptr<PageRange> OpenclBackend::reserve(std::size_t wanted, std::size_t limit) {
  std::unique_ptr<Range> range = Range::make(*this, wanted);
  if (!range) {
    OutOfMemoryDetails details;
    details.what =
        fmt::format("device \"{}\": {} of addresses cannot be reserved; lower its limit", name_, format_bytes(wanted));
    throw OutOfMemory(std::move(details));
  }
  base_ = range->base();
  const std::size_t most = device_.most_bytes / kPageBytes * kPageBytes;
  const char* const buffers = std::getenv("PLIMSOLL_OPENCL_BUFFERS");
  const bool separate = buffers && std::string_view(buffers) == "separate";
  const std::size_t usual =
      separate ? 0 : std::clamp(limit / kSegments / kPageBytes * kPageBytes, kLeastSegment, kMostSegment);
  segments_ = std::make_unique<Segments>(static_cast<Segments::Memory&>(*this),
                                         Segments::Sizes{limit, std::min(usual, most), most});
  return range;
}

std::size_t OpenclBackend::segment_bytes() const {
  const std::lock_guard lock(mutex_);
  return segments_ ? segments_->bytes() : 0;
}

bool OpenclBackend::make_segment(std::size_t segment, std::size_t bytes) noexcept {
  const BlockSignals blocked;
  cl_int code = CL_SUCCESS;
  // Without this flag PoCL takes the memory at its first use, and ends the process when there is none.
  const cl_mem_flags flags = CL_MEM_READ_WRITE | (device_.is_processor ? CL_MEM_ALLOC_HOST_PTR : 0);
  const cl_mem made = cl_.clCreateBuffer(context_, flags, bytes, nullptr, &code);
  count_driver_allocation();
  if (code != CL_SUCCESS || !made) return false;  // Not lost: less may fit another time.
  if (buffers_.size() <= segment) buffers_.resize(segment + 1);
  buffers_[segment] = made;
  return true;
}

void OpenclBackend::drop_segment(std::size_t segment) noexcept {
  cl_.clReleaseMemObject(std::exchange(buffers_[segment], nullptr));  // When no command uses it any more.
}

void OpenclBackend::copy(Segments::Place to, Segments::Place from, std::size_t bytes) noexcept {
  note(cl_.clEnqueueCopyBuffer(queue_, buffers_[from.segment], buffers_[to.segment], from.offset, to.offset, bytes, 0,
                               nullptr, nullptr),
       "clEnqueueCopyBuffer");
  submitted();
}

// What is not there, such as an operand that was left out, is anywhere.
OpenclBackend::Where OpenclBackend::where(const void* address) const noexcept {
  Segments::Place place;
  const auto* const byte = static_cast<const std::byte*>(address);
  if (byte && byte >= base_ && segments_->find(static_cast<std::size_t>(byte - base_), place))
    return {buffers_[place.segment], place.offset};
  for (const cl_mem buffer : buffers_)
    if (buffer) return {buffer, 0};
  return {};
}

bool OpenclBackend::note(cl_int code, const char* what) noexcept {
  if (code == CL_SUCCESS) return true;
  if (failure_.empty())
    failure_ = fmt::format("device \"{}\": {} failed with {}; it is lost: restart the program, or work on CPU:0", name_,
                           what, opencl_error(code));
  return false;
}

bool OpenclBackend::is_usable() noexcept {
  if (failure_.empty() && OpenclApi::is_forked())
    failure_ = fmt::format("device \"{}\": the process has forked, and a child cannot use OpenCL; use it in the parent",
                           name_);
  return failure_.empty();
}

void OpenclBackend::require_working() const {
  if (!failure_.empty()) throw Error(failure_);
}

void OpenclBackend::fail_for_testing(const std::string& why) noexcept {
  const std::lock_guard lock(mutex_);
  failure_ = why;
}

bool OpenclBackend::begin() noexcept {
  if (queue_) return true;
  if (!is_usable()) return false;
  const BlockSignals blocked;
  cl_int code = CL_SUCCESS;
  if (!context_) context_ = cl_.clCreateContext(nullptr, 1, &device_.id, nullptr, nullptr, &code);
  if (!note(code, "clCreateContext")) return false;
  if (!queue_) queue_ = cl_.clCreateCommandQueue(context_, device_.id, 0, &code);
  if (!note(code, "clCreateCommandQueue")) return false;
  return true;
}

void OpenclBackend::submitted() noexcept {
  if (++unflushed_ >= kFlushEvery) {
    note(cl_.clFlush(queue_), "clFlush");
    unflushed_ = 0;
  }
  if (++in_flight_ < kMostInFlight) return;
  count_wait();
  note(cl_.clFinish(queue_), "clFinish");
  is_empty();
}

bool OpenclBackend::stage_in(const Where& to, const void* from, std::size_t bytes) noexcept {
  if (bytes > kStagedBytes - staged_used_) return false;
  if (!staged_) staged_.reset(new (std::nothrow) std::byte[kStagedBytes]);
  if (!staged_) return false;
  std::byte* const here = staged_.get() + staged_used_;
  std::memcpy(here, from, bytes);
  staged_used_ += bytes;
  note(cl_.clEnqueueWriteBuffer(queue_, to.buffer, CL_FALSE, to.offset, bytes, here, 0, nullptr, nullptr),
       "clEnqueueWriteBuffer");
  submitted();
  return true;
}

void OpenclBackend::copy_in(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  if (!is_usable()) return;
  count_in(bytes);
  const Where there = where(to);
  if (in_flight_ > 0 && stage_in(there, from, bytes)) return;
  if (in_flight_ > 0) count_wait();
  note(cl_.clEnqueueWriteBuffer(queue_, there.buffer, CL_TRUE, there.offset, bytes, from, 0, nullptr, nullptr),
       "clEnqueueWriteBuffer");
  is_empty();
}

void OpenclBackend::copy_out(void* to, const void* from, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  is_usable();
  require_working();
  if (bytes == 0) return;
  count_out(bytes);
  if (in_flight_ > 0) count_wait();
  const Where there = where(from);
  note(cl_.clEnqueueReadBuffer(queue_, there.buffer, CL_TRUE, there.offset, bytes, to, 0, nullptr, nullptr),
       "clEnqueueReadBuffer");
  is_empty();
  require_working();
}

void OpenclBackend::copy(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes == 0 || to == from) return;
  const std::lock_guard lock(mutex_);
  if (!is_usable()) return;
  const Where there = where(to), here = where(from);
  note(
      cl_.clEnqueueCopyBuffer(queue_, here.buffer, there.buffer, here.offset, there.offset, bytes, 0, nullptr, nullptr),
      "clEnqueueCopyBuffer");
  submitted();
}

void OpenclBackend::fill(void* to, std::uint64_t pattern, std::size_t element_bytes, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  if (!is_usable()) return;
  const Where there = where(to);
  note(cl_.clEnqueueFillBuffer(queue_, there.buffer, &pattern, element_bytes, there.offset, bytes, 0, nullptr, nullptr),
       "clEnqueueFillBuffer");
  submitted();
}

void OpenclBackend::finish() {
  const std::lock_guard lock(mutex_);
  is_usable();
  require_working();
  if (!queue_) return;
  if (in_flight_ > 0) count_wait();
  note(cl_.clFinish(queue_), "clFinish");
  is_empty();
  require_working();
}

bool OpenclBackend::has(std::string_view kernel) const noexcept { return has_kernel_source(kernel); }

bool OpenclBackend::run(const KernelCall& call) noexcept {
  if (!call.fits() || !has(call.kernel())) return false;
  Form form{std::string(call.kernel()), call.items(), call.group()};
  if (device_.has_local_memory && device_.most_group >= 256) use_local_memory(form);
  if (device_.is_processor) choose_groups(form);
  if (call.guard() != kNoWord) form.kernel += kGuarded;
  const auto& items = form.items;
  if (items[0] * items[1] * items[2] == 0) return true;
  const std::lock_guard lock(mutex_);
  if (!is_usable() || !begin()) return true;  // Remembered: the next call that waits throws.
  Kernel* const built = kernel_of(form.kernel);
  if (!built) return true;
  const cl_kernel kernel = built->kernel;
  cl_uint place = 0;
  const auto set_place = [&](const Where& where) {
    const cl_int code = cl_.clSetKernelArg(kernel, place++, sizeof(where.buffer), &where.buffer);
    return code == CL_SUCCESS ? cl_.clSetKernelArg(kernel, place++, sizeof(cl_ulong), &where.offset) : code;
  };
  if (call.guard() != kNoWord && !note(set_place({words_, call.guard() * sizeof(Word)}), "clSetKernelArg")) return true;
  for (std::size_t i = 0; i < call.num_arguments(); ++i) {
    const KernelArgument& argument = call.argument(i);
    cl_int code = CL_SUCCESS;
    switch (argument.kind) {
      case KernelArgument::Kind::kAddress:
        code = set_place(where(argument.address));
        break;
      case KernelArgument::Kind::kWord:
        code = set_place({words_, static_cast<std::size_t>(argument.integer) * sizeof(Word)});
        break;
      case KernelArgument::Kind::kInteger:
        code = cl_.clSetKernelArg(kernel, place++, sizeof(argument.integer), &argument.integer);
        break;
      case KernelArgument::Kind::kNumber:
        code = cl_.clSetKernelArg(kernel, place++, sizeof(argument.number), &argument.number);
        break;
    }
    if (!note(code, "clSetKernelArg")) return true;
  }
  const auto enqueue = [&] {
    note(cl_.clEnqueueNDRangeKernel(queue_, kernel, 3, nullptr, items.data(),
                                    form.group[0] > 0 ? form.group.data() : nullptr, 0, nullptr, nullptr),
         "clEnqueueNDRangeKernel");
    count_launch();
    submitted();
  };
  bool& has_run = form.group[0] > 1 ? built->has_run_grouped : built->has_run;
  if (has_run) {
    enqueue();
  } else {  // PoCL compiles it now, in a thread of its own.
    const KeepHandlers kept;
    enqueue();
    if (in_flight_ > 0) count_wait();
    note(cl_.clFinish(queue_), "clFinish");
    is_empty();
    has_run = true;
  }
  return true;
}

bool OpenclBackend::make_words() noexcept {
  if (words_) return true;
  if (!is_usable() || !begin()) return false;
  const BlockSignals blocked;
  cl_int code = CL_SUCCESS;
  const cl_mem_flags flags = CL_MEM_READ_WRITE | (device_.is_processor ? CL_MEM_ALLOC_HOST_PTR : 0);
  const cl_mem made = cl_.clCreateBuffer(context_, flags, kWords * sizeof(Word), nullptr, &code);
  count_driver_allocation();
  if (code != CL_SUCCESS || !made) return false;
  words_ = made;
  for (std::uint32_t word = kWords; word-- > 0;) {
    clear_word(word);
    spare_words_.push_back(word);
  }
  return true;
}

void OpenclBackend::clear_word(std::uint32_t word) noexcept {
  const std::uint32_t nothing = 0;
  note(cl_.clEnqueueFillBuffer(queue_, words_, &nothing, sizeof(nothing), word * sizeof(Word), sizeof(Word), 0, nullptr,
                               nullptr),
       "clEnqueueFillBuffer");
  submitted();
}

std::uint32_t OpenclBackend::take_word() noexcept {
  const std::lock_guard lock(mutex_);
  if (!make_words() || spare_words_.empty()) return kNoWord;
  const std::uint32_t word = spare_words_.back();
  spare_words_.pop_back();
  return word;
}

void OpenclBackend::give_word(std::uint32_t word) noexcept {
  const std::lock_guard lock(mutex_);
  if (is_usable()) clear_word(word);  // After the checks that have not run yet.
  spare_words_.push_back(word);
}

bool OpenclBackend::check_indices(std::uint32_t word, std::uint32_t check, const ConstTensorView& indices,
                                  std::int64_t size) noexcept {
  KernelCall call(indices.dtype() == i64 ? "check_indices.i64" : "check_indices.i32");
  call.word(word).in(indices.bytes()).integer(static_cast<std::int64_t>(indices.size())).integer(size).bits(check);
  const std::size_t items = std::min(kCheckItems, device_.most_group);
  return run(call.items(items).group(items));
}

RefusedIndex OpenclBackend::read_word(std::uint32_t word) {
  const std::lock_guard lock(mutex_);
  is_usable();
  require_working();
  Word found{};
  if (in_flight_ > 0) count_wait();
  note(cl_.clEnqueueReadBuffer(queue_, words_, CL_TRUE, word * sizeof(Word), sizeof(Word), found.data(), 0, nullptr,
                               nullptr),
       "clEnqueueReadBuffer");
  is_empty();
  require_working();
  count_out(sizeof(Word));
  if (found[0] != 0) clear_word(word);
  const std::uint64_t index = found[2] | std::uint64_t{found[3]} << 32;
  return {found[0], found[1], static_cast<std::int64_t>(index)};
}

OpenclBackend::Kernel* OpenclBackend::kernel_of(std::string_view name) noexcept {
  const std::string key(name);
  const auto found = kernels_.find(key);
  if (found != kernels_.end()) return &found->second;
  try {
    return &kernels_.emplace(key, build(name)).first->second;
  } catch (const std::exception& error) {
    if (failure_.empty()) failure_ = fmt::format("device \"{}\": kernel \"{}\": {}", name_, name, error.what());
    return nullptr;
  }
}

OpenclBackend::Kernel OpenclBackend::build(std::string_view name) {
  const BlockSignals blocked;
  const KeepHandlers kept;
  // For tools/check_opencl, which compares what ran in the simulator with what models use.
  if (const char* const list = std::getenv("PLIMSOLL_OPENCL_KERNELS"))
    std::ofstream(list, std::ios::app) << name << '\n';
  const std::string source = kernel_source(name);
  const ProgramCache cache(device_.name + "\n" + device_.driver + "\n" + source);
  Kernel made;
  cl_int code = CL_SUCCESS;
  if (const std::string binary = cache.read(); !binary.empty()) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
    const std::size_t size = binary.size();
    cl_int status = CL_SUCCESS;
    made.program = cl_.clCreateProgramWithBinary(context_, 1, &device_.id, &size, &bytes, &status, &code);
    if (code != CL_SUCCESS || status != CL_SUCCESS ||
        cl_.clBuildProgram(made.program, 1, &device_.id, "", nullptr, nullptr) != CL_SUCCESS) {
      if (made.program) cl_.clReleaseProgram(made.program);
      made.program = nullptr;  // Another driver wrote it: build it again.
    }
  }
  if (!made.program) {
    const char* text = source.c_str();
    made.program = cl_.clCreateProgramWithSource(context_, 1, &text, nullptr, &code);
    if (code != CL_SUCCESS) throw Error(opencl_error(code));
    code = cl_.clBuildProgram(made.program, 1, &device_.id, "-cl-std=CL1.2", nullptr, nullptr);
    if (code != CL_SUCCESS) {
      std::string log(4096, '\0');
      std::size_t size = 0;
      cl_.clGetProgramBuildInfo(made.program, device_.id, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), &size);
      log.resize(std::min(size, log.size()));
      throw Error(fmt::format("does not build, {}: {}", opencl_error(code), log));
    }
    std::size_t size = 0;
    cl_.clGetProgramInfo(made.program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr);
    std::string binary(size, '\0');
    auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
    if (size > 0 &&
        cl_.clGetProgramInfo(made.program, CL_PROGRAM_BINARIES, sizeof(bytes), &bytes, nullptr) == CL_SUCCESS)
      cache.write(binary);
  }
  made.kernel = cl_.clCreateKernel(made.program, "run", &code);
  if (code != CL_SUCCESS) throw Error(opencl_error(code));
  return made;
}

}  // namespace plimsoll::internal
