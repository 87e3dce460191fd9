// EventReader: the events of a file, one after the other. RecordReader: the records of any TFRecord file.
//
//   EventReader events("logs/events.out.tfevents.1548797801.host");
//   while (auto event = events.next())
//     for (const EventValue& value : event->values)
//       if (value.kind == "scalar") std::cout << event->step << ' ' << value.tag << ' ' << value.scalar << '\n';
//   events.is_truncated();             // the last record is incomplete: its writer is still running, or was killed
//
// Checksums are verified; a damaged record throws Corruption with its offset. Thread safety: one thread at a time.
// Cost: one record is held in memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll {
namespace internal {
class InputFile;
}  // namespace internal

struct RecordOptions {
  std::uint64_t max_record_bytes = std::uint64_t{1} << 30;  // A larger one is Unsupported.
  bool verify_checksums = true;
};

class PLIMSOLL_API RecordReader {
 public:
  explicit RecordReader(const std::filesystem::path& path, const RecordOptions& options = {});
  explicit RecordReader(std::span<const std::byte> bytes,
                        const RecordOptions& options = {});  // `bytes` must outlive it.
  RecordReader(RecordReader&&) noexcept;
  ~RecordReader();

  std::optional<std::string> next();                         // None at the end. Throws Corruption, Unsupported.
  bool is_truncated() const noexcept { return truncated_; }  // After the end: there are bytes of an incomplete record.
  std::uint64_t offset() const noexcept { return offset_; }  // Where the next record begins.
  const std::string& name() const noexcept;
  [[noreturn]] void corrupt(std::uint64_t offset, std::string_view what) const;

 private:
  std::unique_ptr<InputFile> file_;
  RecordOptions options_;
  std::uint64_t offset_ = 0;
  bool truncated_ = false;
};

struct EventHistogram {
  double min = 0, max = 0, count = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> limits, counts;
};

struct EventValue {
  std::string tag;
  std::string kind;  // "scalar", "histogram", "image", "audio", "text", "tensor", or a plugin's name.
  float scalar = 0;
  std::string text;  // The first string of a tensor; an image as it is encoded.
  EventHistogram histogram;
  std::int64_t width = 0, height = 0;  // For images.
};

struct SummaryEvent {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string file_version;
  std::string graph;  // A GraphDef, as bytes; likewise the next two.
  std::string meta_graph;
  std::string run_metadata;
  std::string run_tag;
  std::vector<EventValue> values;
};

class PLIMSOLL_API EventReader {
 public:
  explicit EventReader(const std::filesystem::path& path, const RecordOptions& options = {})
      : records_(path, options) {}
  explicit EventReader(std::span<const std::byte> bytes, const RecordOptions& options = {})
      : records_(bytes, options) {}

  std::optional<SummaryEvent> next();  // Throws Corruption.
  bool is_truncated() const noexcept { return records_.is_truncated(); }

 private:
  RecordReader records_;
};

// Decodes a graph's bytes, for tools: its nodes with names, ops, inputs and devices. Throws Corruption.
struct GraphSummary {
  std::size_t num_nodes = 0;
  std::vector<std::string> names, ops, devices;
};
PLIMSOLL_API GraphSummary summarize_graph(std::string_view graph);

}  // namespace plimsoll
