// EventWriter: what TensorBoard shows, written as it happens.
//
//   EventWriter events("logs/train");
//   events.add_scalar("loss", 0.25f, step);
//   events.add_histogram("dense/kernel", kernel, step);
//   events.add_text("notes", "**first** run", 0);
//   events.add_image("input", pixels, step);              // u8 [height, width, 1, 3 or 4]
//   events.add_graph(graph);  events.add_run_metadata("step 3", metadata, 3);
//
// One file `events.out.tfevents.<seconds>.<host>.<process>.<n>` in the folder, which is made. Every record reaches the
// system in one piece at once, so a process that is killed loses the record it is writing and no other; the disk is
// asked to keep them `flush_seconds` after they came, by a thread of its own, at flush() and at the end. Errors of the
// disk are thrown, as Error; those of the thread by the next call. Thread safety: any thread may add. Cost: one system
// call for a scalar, some microseconds; a histogram and an image also a pass over the tensor, in pieces: no copy of it
// is made.
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
  std::string suffix = {};  // Of the file name.
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
  // Of all elements, in buckets that grow by a tenth; those that are not finite are left out.
  void add_histogram(std::string_view tag, const Tensor& values, std::int64_t step);
  void add_text(std::string_view tag, std::string_view markdown, std::int64_t step);
  // Throws InvalidArgument for anything but u8 of shape [height, width, 1, 3 or 4].
  void add_image(std::string_view tag, const Tensor& pixels, std::int64_t step);
  void add_graph(const GraphDefinition& graph);
  void add_run_metadata(std::string_view tag, const RunMetadata& metadata, std::int64_t step);

  void flush();  // To the disk.
  void close();  // And no more. A second time does nothing.

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  struct Inside;
  void write_event(std::int64_t step, std::uint32_t field, std::string_view content);
  void write_value(std::int64_t step, std::string_view value);

  std::filesystem::path path_;
  std::unique_ptr<Inside> inside_;
};

}  // namespace plimsoll
