// Reads a file of tensors or events and describes its contents, for `plimsoll inspect`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/shape.h"

namespace plimsoll::internal {

struct InspectedTensor {
  std::string name;
  std::string dtype;
  Shape shape;
  std::uint64_t bytes = 0;
  std::string checksum;  // "ok", "none" where the format has none, else what is wrong.
};

struct InspectedTag {
  std::string tag;
  std::string kind;  // "scalar", "histogram", ...
  std::uint64_t count = 0;
  std::int64_t first_step = 0, last_step = 0;
  float last_value = 0;  // For scalars.
};

struct Inspection {
  std::string file;
  std::string kind;  // "checkpoint", "events", "safetensors", "keras", "hdf5", "npz", "npy".
  std::vector<InspectedTensor> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;
  // For event files.
  std::uint64_t records = 0;
  std::uint64_t graph_nodes = 0;
  bool truncated = false;
  std::vector<InspectedTag> tags;

  std::uint64_t bytes() const;     // All tensors together.
  std::uint64_t problems() const;  // Tensors whose bytes are missing or damaged.
};

// A checkpoint is given by its prefix, any of its files, or its folder. Throws NotFound, Corruption (of the index or
// header; a damaged tensor is noted in its row), InvalidArgument for a file of another kind.
Inspection inspect(const std::filesystem::path& path);

}  // namespace plimsoll::internal
