#include "plimsoll/memory/trace/trace_session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/system_error.h"
#include "plimsoll/memory/chunk.h"

namespace plimsoll::internal {

using namespace trace_format;

namespace {

constexpr std::size_t kLeastBytes = 128_KiB;
constexpr std::size_t kMostNameBytes = 16_MiB;
constexpr std::size_t kMostPlanBytes = 16_MiB;             // Of all plans together; one plan may have a sixteenth.
constexpr std::size_t kEndBytes = kBlockHeaderBytes + 10;  // Kept free for the end of the file.
constexpr std::uint32_t kMoreNames = 1;                    // Number of the name that represents those beyond the limit.

TraceOptions checked(TraceOptions options) {
  if (options.max_bytes < kLeastBytes)
    throw InvalidArgument(fmt::format("trace \"{}\": a maximum of {} is too small; give it at least {}",
                                      options.path.string(), format_bytes_exactly(options.max_bytes),
                                      format_bytes(kLeastBytes)));
  return options;
}

// Collects items into a block and passes it on.
class BlockBuilder {
 public:
  BlockBuilder(BlockType type, const std::function<void(std::span<const std::byte>)>& sink)
      : type_(type), sink_(sink) {}
  ~BlockBuilder() { flush(); }

  void number(std::uint64_t value) {
    std::byte bytes[10];
    add({bytes, static_cast<std::size_t>(put_number(bytes, value) - bytes)});
  }
  void text(std::string_view text) {
    number(text.size());
    add(std::as_bytes(std::span(text)));
  }
  void bytes(std::span<const std::byte> bytes) { add(bytes); }
  void end_item() {
    ++items_;
    if (block_.size() > kBytes) flush();
  }

 private:
  static constexpr std::size_t kBytes = 64_KiB;
  void add(std::span<const std::byte> bytes) { block_.insert(block_.end(), bytes.begin(), bytes.end()); }
  void flush() {
    if (items_ == 0) return;
    BlockHeader header;
    header.type = type_;
    header.payload_bytes = static_cast<std::uint32_t>(block_.size() - kBlockHeaderBytes);
    header.items = std::exchange(items_, 0);
    put_block_header(block_.data(), header, block_.data() + kBlockHeaderBytes);
    sink_(block_);
    block_.resize(kBlockHeaderBytes);
  }

  const BlockType type_;
  const std::function<void(std::span<const std::byte>)>& sink_;
  std::vector<std::byte> block_ = std::vector<std::byte>(kBlockHeaderBytes);
  std::uint32_t items_ = 0;
};

}  // namespace

TraceSession::TraceSession(TraceOptions options)
    : options_(checked(std::move(options))),
      partial_(options_.path.string() + ".partial"),
      process_(getpid()),
      start_ns_(monotonic_ns()),
      start_unix_ns_(
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
              .count()) {
  names_.emplace_back("(more names)");
  if (options_.mode == TraceMode::kRing) return;
  file_ = open(partial_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
  if (file_ < 0) throw_system_error("trace", partial_.string(), "open", errno);
  std::byte header[kHeaderBytes];
  put_header(header, {.mode = 0, .start_unix_ns = start_unix_ns_, .process = static_cast<std::uint32_t>(process_)});
  write_stream(header);
}

TraceSession::~TraceSession() {
  if (file_ >= 0) close(file_);
}

std::uint32_t TraceSession::add_arena(const std::string& name, std::size_t limit, std::size_t page_bytes) {
  arenas_.push_back({name.substr(0, kMaxName), limit, page_bytes});
  return static_cast<std::uint32_t>(arenas_.size() - 1);
}

std::uint32_t TraceSession::add_name(const char* name) {
  if (*name == 0) return 0;
  std::string text = std::string(name).substr(0, kMaxName);
  if (const auto known = numbers_.find(text); known != numbers_.end()) return known->second;
  if (name_bytes_ + text.size() > kMostNameBytes) return kMoreNames;
  name_bytes_ += text.size() + 2 * sizeof(std::string) + 32;  // Twice in memory, with the map's node.
  names_.push_back(text);
  const auto number = static_cast<std::uint32_t>(names_.size());
  numbers_.emplace(std::move(text), number);
  return number;
}

std::uint32_t TraceSession::add_plan(std::vector<std::byte> encoded) {
  if (encoded.size() > kMostPlanBytes / 16 || plan_bytes_ + encoded.size() > kMostPlanBytes) return kNoPlan;
  plan_bytes_ += encoded.size() + sizeof(encoded);
  plans_.push_back(std::move(encoded));
  return static_cast<std::uint32_t>(plans_.size() - 1);
}

TraceSession::ThreadBuffer* TraceSession::attach(std::uint32_t thread) {
  ThreadBuffer* found = nullptr;
  for (const auto& buffer : buffers_)
    if (buffer->idle) found = buffer.get();
  if (!found) found = buffers_.emplace_back(std::make_unique<ThreadBuffer>()).get();
  found->idle = false;
  found->thread = thread;
  found->system_thread = static_cast<std::uint32_t>(syscall(SYS_gettid));
  return found;
}

void TraceSession::detach(ThreadBuffer& buffer) {
  flush(buffer);
  buffer.idle = true;
}

void TraceSession::flush(ThreadBuffer& buffer) {
  const std::uint32_t events = buffer.events.events();
  if (events == 0) return;
  const std::span<const std::byte> block = buffer.events.seal(buffer.thread, buffer.system_thread);
  events_ += events;
  if (options_.mode == TraceMode::kRing) {
    std::vector<std::byte> bytes;
    while (file_bytes_ + block.size() > options_.max_bytes) {
      file_bytes_ -= ring_.front().bytes.size();
      dropped_ += ring_.front().events;
      bytes = std::move(ring_.front().bytes);  // For reuse.
      ring_.pop_front();
    }
    bytes.assign(block.begin(), block.end());
    file_bytes_ += block.size();
    ring_.push_back({std::move(bytes), events});
  } else {
    write_new_definitions();
    const bool fits = file_bytes_ + block.size() + kEndBytes <= options_.max_bytes;
    if (fits) write_stream(block);
    if (!fits || error_ != 0) dropped_ += events;
  }
  buffer.events.clear();
}

void TraceSession::flush_all() {
  for (const auto& buffer : buffers_) flush(*buffer);
}

void TraceSession::write_stream(std::span<const std::byte> bytes) {
  if (getpid() != process_) return;  // A forked child shares the file and must leave it alone.
  while (!bytes.empty() && error_ == 0) {
    const ssize_t written = write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      error_ = errno;
      break;
    }
    file_bytes_ += static_cast<std::size_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

// A stream's.
void TraceSession::write_new_definitions() {
  write_definitions([&](std::span<const std::byte> bytes) { write_stream(bytes); }, written_);
  for (std::size_t i = written_.plans; i < plans_.size(); ++i) plans_[i] = {};
  written_ = {names_.size(), arenas_.size(), plans_.size()};
}

void TraceSession::write_definitions(const Sink& sink, const Written& before) const {
  {
    BlockBuilder names(BlockType::kNames, sink);
    for (std::size_t i = before.names; i < names_.size(); ++i) {
      names.text(names_[i]);
      names.end_item();
    }
  }
  {
    BlockBuilder plans(BlockType::kPlans, sink);
    for (std::size_t i = before.plans; i < plans_.size(); ++i) {
      plans.bytes(plans_[i]);
      plans.end_item();
    }
  }
  BlockBuilder arenas(BlockType::kArenas, sink);
  for (std::size_t i = before.arenas; i < arenas_.size(); ++i) {
    arenas.number(arenas_[i].limit);
    arenas.number(arenas_[i].page_bytes);
    arenas.text(arenas_[i].name);
    arenas.end_item();
  }
}

void TraceSession::write_end(const Sink& sink) const {
  BlockBuilder end(BlockType::kEnd, sink);
  end.number(dropped_);
  end.end_item();
}

void TraceSession::write_ring(const Sink& sink) const {
  std::byte header[kHeaderBytes];
  put_header(header, {.mode = 1, .start_unix_ns = start_unix_ns_, .process = static_cast<std::uint32_t>(process_)});
  sink(header);
  write_definitions(sink, {});
  for (const RingBlock& block : ring_) sink(block.bytes);
  write_end(sink);
}

void TraceSession::save(const std::filesystem::path& path) {
  AtomicFile file(path);
  write_ring([&](std::span<const std::byte> bytes) { file.write(bytes); });
  file.commit();
}

void TraceSession::require_written() const {
  if (error_ != 0) throw_system_error("trace", partial_.string(), "write", error_);
}

void TraceSession::complete() {
  if (getpid() != process_) return;
  if (options_.mode == TraceMode::kRing) return save(options_.path);
  write_new_definitions();
  write_end([&](std::span<const std::byte> bytes) { write_stream(bytes); });
  if (error_ == 0 && fsync(file_) != 0) error_ = errno;
  close(std::exchange(file_, -1));
  require_written();
  if (std::rename(partial_.c_str(), options_.path.c_str()) != 0)
    throw_system_error("trace", options_.path.string(), "rename to", errno);
}

TraceCounters TraceSession::counters() const {
  TraceCounters counters{events_, dropped_, file_bytes_, name_bytes_ + plan_bytes_};
  for (const auto& buffer : buffers_) {
    counters.events += buffer->events.events();
    counters.buffered_bytes += sizeof(ThreadBuffer);
  }
  if (options_.mode == TraceMode::kRing) counters.buffered_bytes += file_bytes_;
  return counters;
}

}  // namespace plimsoll::internal
