// The messages of event files, as bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "plimsoll/base/tensor_view.h"
#include "plimsoll/io/graph_definition.h"

namespace plimsoll::internal {

// A record as stored: length, its checksum, the content, its checksum.
std::string frame_record(std::string_view content);

// An Event of this step and time whose `field` is `content`.
std::string event_message(double wall_time, std::int64_t step, std::uint32_t field, std::string_view content);

// Summary values.
std::string scalar_value(std::string_view tag, float value);
std::string histogram_value(std::string_view tag, const ConstTensorView& values);
std::string text_value(std::string_view tag, std::string_view text);
std::string image_value(std::string_view tag, std::int64_t height, std::int64_t width, std::int64_t channels,
                        std::string_view encoded);

std::string graph_message(const GraphDefinition& graph);
std::string run_metadata_message(const RunMetadata& metadata);

// A PNG of 8-bit pixels, rows first; 1 (grey), 3 or 4 (with alpha) channels.
std::string encode_png(std::span<const std::byte> pixels, std::uint32_t height, std::uint32_t width,
                       std::uint32_t channels);

}  // namespace plimsoll::internal
