#include "plimsoll/io/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/wire.h"
#include "plimsoll/io/internal/file_mapping.h"
#include "plimsoll/io/internal/input_file.h"
#include "plimsoll/io/internal/pieces.h"
#include "plimsoll/io/internal/pinned_bytes.h"
#include "plimsoll/io/internal/safetensors_header.h"
#include "plimsoll/io/tree_names.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // The format's own bound.

// As JSON. Uses strings only: that library's objects end the program when memory runs out in their destructors.
std::string in_quotes(const std::string& text) { return strict_json_text(nlohmann::json(text)); }

std::string header_text(const std::vector<NamedLeaf>& leaves, const FileMetadata& metadata,
                        const std::filesystem::path& path) {
  std::string text = "{";
  std::uint64_t offset = 0;
  try {
    if (!metadata.empty()) {
      text += "\"__metadata__\":{";
      for (const auto& [key, value] : metadata) text += in_quotes(key) + ":" + in_quotes(value) + ",";
      text.back() = '}';
      text += ',';
    }
    for (const auto& [name, tensor] : leaves) {
      if (name == "__metadata__")
        throw InvalidArgument("save_safetensors: the name \"__metadata__\" is the format's own; rename the tensor");
      tensor.view();  // Throws for what has no bytes, before anything is written.
      text += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}},", in_quotes(name),
                          safetensors_dtype_name(tensor.dtype()), fmt::join(tensor.shape(), ","), offset,
                          offset + tensor.nbytes());
      offset += tensor.nbytes();
    }
  } catch (const nlohmann::json::exception& error) {
    throw InvalidArgument(
        fmt::format("save_safetensors: \"{}\": names and metadata must be UTF-8: {}", path.native(), error.what()));
  }
  if (text.size() > 1) text.pop_back();
  return text + "}";
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(std::make_unique<InputFile>(path)) {
  load();
}
SafetensorsFile::SafetensorsFile(std::span<const std::byte> bytes)
    : file_(std::make_unique<InputFile>("memory", bytes)) {
  load();
}
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

void SafetensorsFile::load() {
  if (file_->size() < 8) file_->corrupt(0, fmt::format("has {} bytes, too few for a safetensors file", file_->size()));
  const auto header_bytes = load_number<std::uint64_t>(file_->read_string(0, 8, 8).data());
  if (header_bytes > kMaxHeaderBytes || header_bytes > file_->size() - 8)
    file_->corrupt(0, fmt::format("names a header of {} bytes in a file of {}", header_bytes, file_->size()));
  try {
    SafetensorsHeader header = parse_safetensors_header(file_->read_string(8, header_bytes, kMaxHeaderBytes));
    metadata_ = std::move(header.metadata);
    entries_ = std::move(header.entries);
  } catch (const HeaderError& error) {
    file_->corrupt(8 + error.offset, error.what());
  }
  std::uint64_t end = 8 + header_bytes;
  for (SafetensorsEntry& entry : entries_) {
    if (entry.size > file_->size() - end)
      file_->corrupt(end, fmt::format("tensor \"{}\": expected {} bytes, the file ends at {}", entry.name, entry.size,
                                      file_->size()));
    entry.offset = end;
    end += entry.size;
    positions_.emplace(entry.name, positions_.size());
  }
  if (end != file_->size()) file_->corrupt(end, fmt::format("has {} bytes after the last tensor", file_->size() - end));
}

const SafetensorsEntry& SafetensorsFile::entry(std::string_view name) const {
  const auto found = positions_.find(name);
  if (found != positions_.end()) return entries_[found->second];
  throw NotFound(
      fmt::format("file \"{}\": there is no tensor \"{}\" among its {}", file_->name(), name, entries_.size()));
}

Tensor SafetensorsFile::read(std::string_view name) const {
  const SafetensorsEntry& found = entry(name);
  if (!found.dtype)
    throw Unsupported(fmt::format("file \"{}\": tensor \"{}\": its dtype {} is not supported", file_->name(), name,
                                  found.dtype_name));
  Tensor tensor = make_tensor({.op = "LoadSafetensors", .category = Category::kParameters}, found.shape, *found.dtype,
                              current_device());
  if (found.size == 0) return tensor;
  const HostWrite written(tensor);
  const std::span<std::byte> bytes(written.bytes(), static_cast<std::size_t>(found.size));
  file_->read(found.offset, bytes);
  if (found.dtype == boolean) make_bools(bytes);
  return tensor;
}

Tensor SafetensorsFile::map(std::string_view name) const {
  const SafetensorsEntry& found = entry(name);
  if (!found.dtype || found.size == 0 || file_->handle() < 0 || found.offset % size_of(*found.dtype) != 0 ||
      found.dtype == boolean)  // Bytes of a file may not be valid bools.
    return read(name);
  StorageRef storage = map_file(*file_, found.offset, found.size);
  return make_tensor_on(std::move(storage), 0, found.shape, *found.dtype,
                        {.op = "MapSafetensors", .category = Category::kParameters});
}

void save_safetensors(const std::filesystem::path& path, const TensorTree& tree, const FileMetadata& metadata) {
  std::vector<NamedLeaf> leaves = tree_names(tree, "save_safetensors");
  // Larger elements first, as other writers do, so that all are aligned.
  std::sort(leaves.begin(), leaves.end(), [](const NamedLeaf& a, const NamedLeaf& b) {
    const std::size_t left = size_of(a.second.dtype()), right = size_of(b.second.dtype());
    return left != right ? left > right : a.first < b.first;
  });
  std::string text = header_text(leaves, metadata, path);
  text.resize(round_up(text.size(), 8), ' ');
  remove_stale_temporaries(path.parent_path(), path.filename().native() + ".");
  AtomicFile file(path);
  std::string size;
  append_number(size, std::uint64_t{text.size()});
  file.write(size);
  file.write(text);
  for (const auto& [name, tensor] : leaves) file.write(PinnedBytes(tensor).bytes());
  file.commit();
}

TensorTree load_safetensors(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  std::vector<NamedLeaf> leaves;
  for (const SafetensorsEntry& entry : file.entries()) leaves.emplace_back(entry.name, file.read(entry.name));
  return tree_from_names(std::move(leaves));
}

}  // namespace plimsoll
