#include "plimsoll/io/hdf5.h"

#include <fmt/format.h>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/io/hdf5_writer.h"
#include "plimsoll/io/internal/file_mapping.h"
#include "plimsoll/io/internal/hdf5_data.h"
#include "plimsoll/io/tree_names.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

// h5py stores bfloat16 as opaque bytes, and Keras adds an attribute that says what they are.
void name_halves(Hdf5Object& object) {
  if (!object.dataset || object.dataset->type.dtype || object.dataset->type.size != 2) return;
  const auto dtype = object.attributes.find("dtype");
  if (dtype == object.attributes.end() || dtype->second != std::vector<std::string>{"bfloat16"}) return;
  object.dataset->type.kind = Hdf5Type::Kind::kNumber;
  object.dataset->type.dtype = bf16;
}

}  // namespace

Hdf5File::Hdf5File(const std::filesystem::path& path) : file_(std::make_shared<InputFile>(path)) {
  size_ = file_->size();
  load();
}
Hdf5File::Hdf5File(std::span<const std::byte> bytes)
    : file_(std::make_shared<InputFile>("memory", bytes)), size_(bytes.size()) {
  load();
}
Hdf5File::Hdf5File(std::shared_ptr<const InputFile> file, std::uint64_t offset, std::uint64_t size)
    : file_(std::move(file)), base_(offset), size_(size) {
  if (offset > file_->size() || size > file_->size() - offset)
    file_->corrupt(file_->size(), fmt::format("ends before the {} bytes at {}", size, offset));
  load();
}
Hdf5File::Hdf5File(Hdf5File&&) noexcept = default;
Hdf5File::~Hdf5File() = default;

void Hdf5File::load() {
  const Hdf5Bytes bytes{*file_, base_, size_};
  objects_ = read_hdf5_objects(bytes);
  for (std::size_t i = 0; i < objects_.size(); ++i) {
    Hdf5Object& object = objects_[i];
    name_halves(object);
    positions_.emplace(object.path, i);
    if (!object.dataset) continue;
    const Hdf5Layout& layout = object.dataset->layout;
    const bool in_one_piece = layout.kind == Hdf5Layout::Kind::kContiguous || layout.kind == Hdf5Layout::Kind::kCompact;
    entry_positions_.emplace(object.path, entries_.size());
    const bool nowhere = layout.address == kHdf5Nowhere;
    entries_.push_back({object.path, object.dataset->type.dtype, object.dataset->type.name,
                        object.dataset->shape.value_or(Shape({0})), nowhere ? 0 : hdf5_data_bytes(bytes, object),
                        in_one_piece && !nowhere ? base_ + layout.address : 0});
  }
}

const Hdf5Object* Hdf5File::find(std::string_view name) const {
  const auto found = positions_.find(name);
  return found == positions_.end() ? nullptr : &objects_[found->second];
}
bool Hdf5File::has(std::string_view name) const { return find(name) != nullptr; }

const Hdf5Entry& Hdf5File::entry(std::string_view name) const {
  const auto found = entry_positions_.find(name);
  if (found != entry_positions_.end()) return entries_[found->second];
  throw NotFound(
      fmt::format("file \"{}\": there is no dataset \"{}\" among its {}", file_->name(), name, entries_.size()));
}

std::vector<std::string> Hdf5File::groups() const {
  std::vector<std::string> names;
  for (const Hdf5Object& object : objects_)
    if (!object.dataset && !object.path.empty()) names.push_back(object.path);
  return names;
}

bool Hdf5File::has_text(std::string_view object, std::string_view attribute) const {
  const Hdf5Object* found = find(object);
  return found != nullptr && found->attributes.count(std::string(attribute)) > 0;
}
const std::vector<std::string>& Hdf5File::texts(std::string_view object, std::string_view attribute) const {
  if (!has_text(object, attribute))
    throw NotFound(
        fmt::format("file \"{}\": \"{}\" has no attribute \"{}\" with text", file_->name(), object, attribute));
  return find(object)->attributes.at(std::string(attribute));
}
const std::string& Hdf5File::text(std::string_view object, std::string_view attribute) const {
  const std::vector<std::string>& all = texts(object, attribute);
  if (all.size() == 1) return all[0];
  throw NotFound(fmt::format("file \"{}\": attribute \"{}\" of \"{}\" is a list of {}", file_->name(), attribute,
                             object, all.size()));
}
std::vector<std::string> Hdf5File::text_names(std::string_view object) const {
  std::vector<std::string> names;
  if (const Hdf5Object* found = find(object))
    for (const auto& [name, values] : found->attributes) names.push_back(name);
  return names;
}

Tensor Hdf5File::read(std::string_view name) const {
  const Hdf5Entry& found = entry(name);
  if (!found.dtype)
    throw Unsupported(
        fmt::format("file \"{}\": dataset \"{}\": its {} is not supported", file_->name(), name, found.type_name));
  const Hdf5Object& object = *find(name);
  const Hdf5Bytes bytes{*file_, base_, size_};
  const std::uint64_t size = hdf5_data_bytes(bytes, object);  // Called again because it may throw.
  require_hdf5_layout(bytes, object);  // Before memory is taken: nothing has compared its size with the file's.
  Tensor tensor =
      make_tensor({.op = "LoadHdf5", .category = Category::kParameters}, found.shape, *found.dtype, current_device());
  if (size == 0) return tensor;
  const HostWrite written(tensor);
  read_hdf5_data(bytes, object, {written.bytes(), static_cast<std::size_t>(size)});
  return tensor;
}

Tensor Hdf5File::map(std::string_view name) const {
  const Hdf5Entry& found = entry(name);
  if (!found.dtype || found.size == 0 || found.offset == 0 || file_->handle() < 0 ||
      found.offset % size_of(*found.dtype) != 0 || found.dtype == boolean || find(name)->dataset->type.big_endian)
    return read(name);
  return make_tensor_on(map_file(*file_, found.offset, found.size), 0, found.shape, *found.dtype,
                        {.op = "MapHdf5", .category = Category::kParameters});
}

void save_hdf5(const std::filesystem::path& path, const TensorTree& tree) {
  Hdf5Writer writer("save_hdf5");
  for (const auto& [name, tensor] : tree_names(tree, "save_hdf5")) writer.add(name, tensor);
  remove_stale_temporaries(path.parent_path(), path.filename().native() + ".");
  AtomicFile file(path);
  writer.for_each_part([&](std::span<const std::byte> part) { file.write(part); });
  file.commit();
}

TensorTree load_hdf5(const std::filesystem::path& path) {
  const Hdf5File file(path);
  std::vector<NamedLeaf> leaves;
  for (const Hdf5Entry& entry : file.entries()) leaves.emplace_back(entry.name, file.read(entry.name));
  return tree_from_names(std::move(leaves));
}

}  // namespace plimsoll
