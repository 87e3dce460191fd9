#include "plimsoll/io/event_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/base/make_directories.h"
#include "plimsoll/base/system_error.h"
#include "plimsoll/base/wire.h"
#include "plimsoll/io/internal/event_messages.h"
#include "plimsoll/io/internal/pinned_bytes.h"

namespace plimsoll {
namespace {

// Fields of Event.
constexpr std::uint32_t kFileVersion = 3, kGraph = 4, kSummary = 5, kTaggedRunMetadata = 8;
constexpr std::int64_t kMaxImageSide = 16384;

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name[0] == 0 ? "host" : name;
}

}  // namespace

struct EventWriter::Inside {
  ~Inside() {
    if (file >= 0) ::close(file);
  }

  // Syncs some time after a record was written, whether or not another one follows.
  void sync_periodically(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (changed.wait(lock, stop, [this] { return dirty; }) && !stop.stop_requested()) {
      changed.wait_for(lock, stop, std::chrono::duration<double>(flush_seconds), [] { return false; });
      if (stop.stop_requested() || file < 0 || !std::exchange(dirty, false)) continue;
      const int handle = file;  // Stays open until this thread ends.
      lock.unlock();
      const int error = fdatasync(handle) != 0 ? errno : 0;
      lock.lock();
      if (error != 0) background_error = error;
    }
  }

  // Writes all of it or nothing: readers stop at an incomplete record, so everything after it would be lost.
  void append(std::string_view record, const std::string& path) {
    const auto fail = [&](int error) {
      throw_system_error("file", path, fmt::format("write {} bytes after the first {}", record.size(), whole_bytes),
                         error);
    };
    if (broken != 0) fail(broken);
    for (std::size_t done = 0; done < record.size();) {
      const ssize_t wrote = write(file, record.data() + done, record.size() - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) {
        const int error = errno;
        if (done > 0 && ftruncate(file, whole_bytes) != 0) broken = error;
        fail(error);
      }
      done += static_cast<std::size_t>(wrote);
    }
    whole_bytes += static_cast<off_t>(record.size());
  }

  std::mutex mutex;
  std::condition_variable_any changed;
  int file = -1;
  bool dirty = false;        // There are records that were not synced yet.
  int background_error = 0;  // From the timer; thrown by the next call.
  off_t whole_bytes = 0;     // Size of the complete records.
  int broken = 0;            // Why part of a record could not be truncated.
  double flush_seconds = 0;
  std::jthread timer;  // Last, so that it ends before the rest is destroyed.
};

EventWriter::EventWriter(const std::filesystem::path& directory, const EventWriterOptions& options)
    : inside_(std::make_unique<Inside>()) {
  static std::atomic<unsigned> count{0};
  make_directories(directory);
  inside_->flush_seconds = options.flush_seconds;
  do {  // An existing file belongs to another run: never append to it.
    path_ = directory / fmt::format("events.out.tfevents.{:010}.{}.{}.{}{}", static_cast<std::int64_t>(wall_time()),
                                    host_name(), getpid(), count++, options.suffix);
    inside_->file = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  } while (inside_->file < 0 && errno == EEXIST);
  if (inside_->file < 0) throw_system_error("file", path_.native(), "create", errno);
  try {
    write_event(0, kFileVersion, "brain.Event:2");
  } catch (...) {
    unlink(path_.c_str());
    throw;
  }
  inside_->timer =
      std::jthread([inside = inside_.get()](const std::stop_token& stop) { inside->sync_periodically(stop); });
}

EventWriter::~EventWriter() {
  try {
    close();
  } catch (const std::exception& error) {
    log_message(LogLevel::error, error.what());
  }
}

void EventWriter::write_event(std::int64_t step, std::uint32_t field, std::string_view content) {
  const std::string record = frame_record(event_message(wall_time(), step, field, content));
  const std::lock_guard lock(inside_->mutex);
  if (inside_->file < 0)
    throw FailedPrecondition(fmt::format("file \"{}\": cannot add events after close()", path_.native()));
  if (const int error = std::exchange(inside_->background_error, 0))
    throw_system_error("file", path_.native(), "sync", error);
  inside_->append(record, path_.native());
  inside_->dirty = true;
  inside_->changed.notify_one();
}

void EventWriter::write_value(std::int64_t step, std::string_view value) {
  WireWriter summary;
  summary.item(1, value);
  write_event(step, kSummary, summary.bytes());
}

void EventWriter::add_scalar(std::string_view tag, float value, std::int64_t step) {
  write_value(step, scalar_value(tag, value));
}

void EventWriter::add_histogram(std::string_view tag, const Tensor& values, std::int64_t step) {
  write_value(step, histogram_value(tag, PinnedBytes(values).view()));
}

void EventWriter::add_text(std::string_view tag, std::string_view markdown, std::int64_t step) {
  write_value(step, text_value(tag, markdown));
}

void EventWriter::add_image(std::string_view tag, const Tensor& pixels, std::int64_t step) {
  const Shape& shape = pixels.shape();
  const bool fits = pixels.dtype() == u8 && shape.rank() == 3 && (shape[2] == 1 || shape[2] == 3 || shape[2] == 4) &&
                    shape[0] > 0 && shape[1] > 0 && shape[0] <= kMaxImageSide && shape[1] <= kMaxImageSide;
  if (!fits)
    throw InvalidArgument(
        fmt::format("add_image: \"{}\" is {} {}; give uint8 [height, width, 1, 3 or 4], sides up to {}", tag,
                    dtype_name(pixels.dtype()), shape.to_string(), kMaxImageSide));
  const std::string png = encode_png(PinnedBytes(pixels).bytes(), static_cast<std::uint32_t>(shape[0]),
                                     static_cast<std::uint32_t>(shape[1]), static_cast<std::uint32_t>(shape[2]));
  write_value(step, image_value(tag, shape[0], shape[1], shape[2], png));
}

void EventWriter::add_graph(const GraphDefinition& graph) { write_event(0, kGraph, graph_message(graph)); }

void EventWriter::add_run_metadata(std::string_view tag, const RunMetadata& metadata, std::int64_t step) {
  WireWriter tagged;
  tagged.text(1, tag);
  tagged.text(2, run_metadata_message(metadata));
  write_event(step, kTaggedRunMetadata, tagged.bytes());
}

void EventWriter::flush() {
  const std::lock_guard lock(inside_->mutex);
  const int error = std::exchange(inside_->background_error, 0);
  inside_->dirty = false;
  if (error != 0) throw_system_error("file", path_.native(), "sync", error);
  if (inside_->file >= 0 && fdatasync(inside_->file) != 0) throw_system_error("file", path_.native(), "sync", errno);
}

void EventWriter::close() {
  int file = -1, error = 0;
  std::jthread timer;
  {
    const std::lock_guard lock(inside_->mutex);
    file = std::exchange(inside_->file, -1);
    error = std::exchange(inside_->background_error, 0);
    timer.swap(inside_->timer);
  }
  if (timer.joinable()) {
    timer.request_stop();
    timer.join();
  }
  if (file < 0) return;
  if (fdatasync(file) != 0) error = errno;
  if (::close(file) != 0 || error != 0) throw_system_error("file", path_.native(), "close", error ? error : errno);
}

}  // namespace plimsoll
