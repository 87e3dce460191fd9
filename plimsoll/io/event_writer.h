// EventWriter: writes event files that TensorBoard shows, as the events happen.
//
//   EventWriter events("logs/train");
//   events.add_scalar("loss", 0.25f, step);
//   events.add_histogram("dense/kernel", kernel, step);
//   events.add_text("notes", "**first** run", 0);
//   events.add_image("input", pixels, step);              // u8 [height, width, 1, 3 or 4]
//   events.add_graph(graph);  events.add_run_metadata("step 3", metadata, 3);
//
// Writes one file `events.out.tfevents.<seconds>.<host>.<process>.<n>` in the folder, which is created. Every record is
// passed to the system at once and in one piece, so a killed process loses only the record it is writing; a separate
// thread syncs records to disk within `flush_seconds`, at flush() and at the end. Disk errors are thrown as Error;
// those of the thread by the next call. Thread safety: any thread may add. Cost: one system call for a scalar, a few
// microseconds; a histogram or an image also takes a pass over the tensor, in pieces, without copying it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "plimsoll/base/api.h"
#include "plimsoll/io/graph_definition.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct EventWriterOptions {
  double flush_seconds = 120;
  std::string suffix = {};  // Added to the file name.
};

class PLIMSOLL_API EventWriter {
 public:
  // Throws Error when the folder or the file cannot be made.
  explicit EventWriter(const std::filesystem::path& directory, const EventWriterOptions& options = {});
  ~EventWriter();  // close(), but logs an error instead of throwing it.
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // All throw FailedPrecondition after close().
  void add_scalar(std::string_view tag, float value, std::int64_t step);
  // Counts all finite elements, in buckets that grow by a tenth.
  void add_histogram(std::string_view tag, const Tensor& values, std::int64_t step);
  void add_text(std::string_view tag, std::string_view markdown, std::int64_t step);
  // Throws InvalidArgument for anything but u8 of shape [height, width, 1, 3 or 4].
  void add_image(std::string_view tag, const Tensor& pixels, std::int64_t step);
  void add_graph(const GraphDefinition& graph);
  void add_run_metadata(std::string_view tag, const RunMetadata& metadata, std::int64_t step);

  void flush();  // Syncs to the disk.
  void close();  // Flushes and closes the file. A second call does nothing.

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  struct Inside;
  void write_event(std::int64_t step, std::uint32_t field, std::string_view content);
  void write_value(std::int64_t step, std::string_view value);

  std::filesystem::path path_;
  std::unique_ptr<Inside> inside_;
};

}  // namespace plimsoll
