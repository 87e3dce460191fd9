#include "plimsoll/io/event_reader.h"

#include <fmt/format.h>

#include <utility>

#include "plimsoll/base/crc32c.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/wire.h"
#include "plimsoll/io/internal/input_file.h"
#include "plimsoll/io/internal/tensorflow_types.h"

namespace plimsoll {
namespace {

std::vector<double> parse_doubles(std::string_view packed) {
  std::vector<double> values(packed.size() / 8);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = load_number<double>(packed.data() + 8 * i);
  return values;
}

EventHistogram parse_histogram(std::string_view bytes) {
  EventHistogram histogram;
  double* const numbers[] = {&histogram.min, &histogram.max, &histogram.count, &histogram.sum,
                             &histogram.sum_of_squares};
  for (WireReader in(bytes); in.next();) {
    if (in.field() >= 1 && in.field() <= 5) *numbers[in.field() - 1] = in.real();
    if (in.field() == 6) histogram.limits = parse_doubles(in.bytes());
    if (in.field() == 7) histogram.counts = parse_doubles(in.bytes());
  }
  return histogram;
}

void parse_image(std::string_view bytes, EventValue& value) {
  for (WireReader in(bytes); in.next();) {
    if (in.field() == 1) value.height = in.integer();
    if (in.field() == 2) value.width = in.integer();
    if (in.field() == 4) value.text = in.bytes();
  }
}

// The one number or the first string of a TensorProto.
void parse_tensor(std::string_view bytes, EventValue& value) {
  std::int64_t dtype = 0;
  bool first = true;
  for (WireReader in(bytes); in.next();) {
    if (in.field() == 1) dtype = in.integer();
    if (in.field() == 4 && dtype == 1 && in.bytes().size() == 4) value.scalar = load_number<float>(in.bytes().data());
    if (in.field() == 4 && dtype == 2 && in.bytes().size() == 8)
      value.scalar = static_cast<float>(load_number<double>(in.bytes().data()));
    if (in.field() == 5 && in.is_bytes() && in.bytes().size() >= 4)
      value.scalar = load_number<float>(in.bytes().data());
    if (in.field() == 5 && !in.is_bytes()) value.scalar = in.single();
    if (in.field() == 8 && std::exchange(first, false)) value.text = in.bytes();
  }
}

std::string parse_plugin(std::string_view metadata) {
  std::string name;
  for (WireReader in(metadata); in.next();) {
    if (in.field() != 1) continue;
    for (WireReader plugin(in.bytes()); plugin.next();)
      if (plugin.field() == 1) name = plugin.bytes();
  }
  return name;
}

EventValue parse_value(std::string_view bytes) {
  EventValue value;
  std::string plugin;
  for (WireReader in(bytes); in.next();) switch (in.field()) {
      case 1:
        value.tag = in.bytes();
        break;
      case 2:
        value.kind = "scalar";
        value.scalar = in.single();
        break;
      case 4:
        value.kind = "image";
        parse_image(in.bytes(), value);
        break;
      case 5:
        value.kind = "histogram";
        value.histogram = parse_histogram(in.bytes());
        break;
      case 6:
        value.kind = "audio";
        break;
      case 8:
        value.kind = "tensor";
        parse_tensor(in.bytes(), value);
        break;
      case 9:
        plugin = parse_plugin(in.bytes());
        break;
    }
  if (value.kind == "tensor" && !plugin.empty()) value.kind = plugin == "scalars" ? "scalar" : plugin;
  return value;
}

SummaryEvent parse_event(std::string_view bytes) {
  SummaryEvent event;
  for (WireReader in(bytes); in.next();) switch (in.field()) {
      case 1:
        event.wall_time = in.real();
        break;
      case 2:
        event.step = in.integer();
        break;
      case 3:
        event.file_version = in.bytes();
        break;
      case 4:
        event.graph = in.bytes();
        break;
      case 5:
        for (WireReader summary(in.bytes()); summary.next();)
          if (summary.field() == 1) event.values.push_back(parse_value(summary.bytes()));
        break;
      case 8:
        for (WireReader tagged(in.bytes()); tagged.next();) {
          if (tagged.field() == 1) event.run_tag = tagged.bytes();
          if (tagged.field() == 2) event.run_metadata = tagged.bytes();
        }
        break;
      case 9:
        event.meta_graph = in.bytes();
        break;
    }
  return event;
}

}  // namespace

RecordReader::RecordReader(const std::filesystem::path& path, const RecordOptions& options)
    : file_(std::make_unique<InputFile>(path)), options_(options) {}
RecordReader::RecordReader(std::span<const std::byte> bytes, const RecordOptions& options)
    : file_(std::make_unique<InputFile>("memory", bytes)), options_(options) {}
RecordReader::RecordReader(RecordReader&&) noexcept = default;
RecordReader::~RecordReader() = default;
const std::string& RecordReader::name() const noexcept { return file_->name(); }
void RecordReader::corrupt(std::uint64_t offset, std::string_view what) const { file_->corrupt(offset, what); }

std::optional<std::string> RecordReader::next() {
  constexpr std::uint64_t kHead = 12, kTail = 4;
  const std::uint64_t left = file_->size() - offset_;
  truncated_ = left > 0;
  if (left < kHead) return {};
  const std::string head = file_->read_string(offset_, kHead, kHead);
  const auto length = load_number<std::uint64_t>(head.data());
  const std::uint32_t length_crc = mask_crc32c(crc32c(std::string_view(head).substr(0, 8)));
  if (options_.verify_checksums && load_number<std::uint32_t>(head.data() + 8) != length_crc)
    corrupt(offset_, fmt::format("the length of a record, {}, has a wrong checksum", length));
  if (length > left - kHead || left - kHead - length < kTail) return {};
  std::string content = file_->read_string(offset_ + kHead, length, options_.max_record_bytes);
  const auto stored = load_number<std::uint32_t>(file_->read_string(offset_ + kHead + length, kTail, kTail).data());
  if (options_.verify_checksums && stored != mask_crc32c(crc32c(content)))
    corrupt(offset_, fmt::format("a record of {} bytes has a wrong checksum", length));
  offset_ += kHead + length + kTail;
  truncated_ = false;
  return content;
}

std::optional<SummaryEvent> EventReader::next() {
  const std::uint64_t offset = records_.offset();
  const std::optional<std::string> record = records_.next();
  if (!record) return {};
  try {
    return parse_event(*record);
  } catch (const WireError& error) {
    records_.corrupt(offset, fmt::format("a record is not an event: {}", error.what()));
  }
}

GraphSummary summarize_graph(std::string_view graph) {
  GraphSummary summary;
  try {
    for (WireReader in(graph); in.next();) {
      if (in.field() != 1) continue;
      ++summary.num_nodes;
      std::string fields[5];
      for (WireReader node(in.bytes()); node.next();)
        if (node.field() == 1 || node.field() == 2 || node.field() == 4) fields[node.field()] = node.bytes();
      summary.names.push_back(fields[1]);
      summary.ops.push_back(fields[2]);
      summary.devices.push_back(fields[4]);
    }
  } catch (const WireError& error) {
    throw Corruption(fmt::format("a graph definition of {} bytes is damaged: {}", graph.size(), error.what()));
  }
  return summary;
}

}  // namespace plimsoll
