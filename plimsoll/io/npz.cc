#include "plimsoll/io/npz.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/function_ref.h"
#include "plimsoll/io/internal/input_file.h"
#include "plimsoll/io/internal/npy_header.h"
#include "plimsoll/io/internal/pieces.h"
#include "plimsoll/io/internal/pinned_bytes.h"
#include "plimsoll/io/internal/staging.h"
#include "plimsoll/io/internal/zip.h"
#include "plimsoll/io/tree_names.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

constexpr std::uint64_t kMaxArrayHeaderBytes = 1_MiB;

// Bytes in order, from a file or a member of an archive.
struct NpySource {
  std::string where;  // For messages.
  std::uint64_t size = 0;
  FunctionRef<void(std::span<std::byte>)> read;
};

[[noreturn]] void corrupt(const NpySource& source, std::uint64_t offset, std::string_view what) {
  throw Corruption(fmt::format("{}: {} (offset {})", source.where, what, offset));
}

// Leaves the source at the first element.
NpyHeader take_header(const NpySource& source) {
  std::string bytes(std::min<std::uint64_t>(source.size, 10), '\0');
  source.read(std::as_writable_bytes(std::span(bytes)));
  try {
    if (bytes.size() == 10 && bytes[6] > 1 && source.size >= kNpyPreamble) {
      bytes.resize(kNpyPreamble);
      source.read(std::as_writable_bytes(std::span(bytes)).subspan(10));
    }
    const NpyPreamble preamble = parse_npy_preamble(bytes);
    if (preamble.header_bytes > source.size - preamble.bytes || preamble.header_bytes > kMaxArrayHeaderBytes)
      throw NpyError(fmt::format("a header of {} bytes in {}", preamble.header_bytes, source.size));
    std::string text(static_cast<std::size_t>(preamble.header_bytes), '\0');
    source.read(std::as_writable_bytes(std::span(text)));
    if (text.find("'descr': [") != std::string::npos)
      throw Unsupported(source.where + ": a structured array; give one file per field");
    NpyHeader header = parse_npy_header(text);
    if (header.descr.find('O') != std::string::npos)
      throw Unsupported(source.where +
                        ": an array of Python objects; these are pickles, which run code, and are not read");
    const std::uint64_t left = source.size - preamble.bytes - text.size();
    if (header.dtype && header.shape.size() > left / header.element_bytes)
      throw NpyError(
          fmt::format("{} bytes for {} of shape {}; it is truncated", left, header.descr, header.shape.to_string()));
    return header;
  } catch (const NpyError& error) {
    corrupt(source, 0, error.what());
  }
}

// Elements that arrive with the first axis fastest are placed one by one.
void read_fortran(const NpySource& source, const TensorView& view) {
  const std::size_t element = size_of(view.dtype()), rank = view.rank();
  const Strides strides = row_major_strides(view.shape());
  const Staging staging(256_KiB);
  std::vector<std::int64_t> index(rank, 0);
  std::int64_t place = 0;
  for_each_piece(view.nbytes(), staging.bytes().size() / element * element, [&](std::uint64_t, std::size_t size) {
    source.read(staging.bytes().first(size));
    for (std::size_t at = 0; at < size; at += element) {
      std::copy_n(staging.bytes().data() + at, element, view.bytes() + static_cast<std::size_t>(place) * element);
      for (std::size_t axis = 0; axis < rank; ++axis) {
        place += strides[axis];
        if (++index[axis] < view.shape()[axis]) break;
        place -= strides[axis] * view.shape()[axis];
        index[axis] = 0;
      }
    }
  });
}

Tensor read_array(const NpySource& source) {
  const NpyHeader header = take_header(source);
  if (!header.dtype)
    throw Unsupported(fmt::format("{}: elements of type \"{}\" are not supported", source.where, header.descr));
  Tensor tensor =
      make_tensor({.op = "LoadNpy", .category = Category::kInputs}, header.shape, *header.dtype, current_device());
  if (tensor.nbytes() == 0) return tensor;
  const HostWrite written(tensor);
  const TensorView& view = written.view();
  const std::span<std::byte> bytes(view.bytes(), view.nbytes());
  if (header.fortran_order && view.rank() > 1)
    read_fortran(source, view);
  else
    source.read(bytes);
  if (header.swapped) swap_bytes(bytes, header.element_bytes);
  if (header.dtype == boolean) make_bools(bytes);
  return tensor;
}

// Calls `f` with the whole file as a source.
template <class F>
auto with_source(const InputFile& file, F&& f) {
  std::uint64_t at = 0;
  const auto read = [&](std::span<std::byte> bytes) {
    file.read(at, bytes);
    at += bytes.size();
  };
  return f(NpySource{fmt::format("file \"{}\"", file.name()), file.size(), read}, at);
}

Tensor read_whole(const InputFile& file) {
  return with_source(file, [](const NpySource& source, const std::uint64_t&) { return read_array(source); });
}

std::string array_name(const ZipMember& member) {
  return member.name.ends_with(".npy") ? member.name.substr(0, member.name.size() - 4) : member.name;
}

}  // namespace

Tensor load_npy(const std::filesystem::path& path) { return read_whole(InputFile(path)); }
Tensor load_npy(std::span<const std::byte> bytes) { return read_whole(InputFile("memory", bytes)); }

NpyEntry npy_entry(const std::filesystem::path& path) {
  const InputFile file(path);
  return with_source(file, [&](const NpySource& source, const std::uint64_t& at) {
    const NpyHeader header = take_header(source);
    const std::uint64_t size = header.dtype ? header.shape.size() * header.element_bytes : file.size() - at;
    return NpyEntry{path.stem().native(), header.dtype, header.descr, header.shape, header.fortran_order, false, size};
  });
}

void save_npy(const std::filesystem::path& path, const Tensor& tensor) {
  const PinnedBytes pinned(tensor);
  remove_stale_temporaries(path.parent_path(), path.filename().native() + ".");
  AtomicFile file(path);
  file.write(format_npy_header(tensor.dtype(), tensor.shape()));
  file.write(pinned.bytes());
  file.commit();
}

NpzFile::NpzFile(const std::filesystem::path& path)
    : file_(std::make_unique<InputFile>(path)), members_(read_zip_directory(*file_)) {
  number_members();
}
NpzFile::NpzFile(std::span<const std::byte> bytes)
    : file_(std::make_unique<InputFile>("memory", bytes)), members_(read_zip_directory(*file_)) {
  number_members();
}
NpzFile::NpzFile(NpzFile&&) noexcept = default;
NpzFile::~NpzFile() = default;

void NpzFile::number_members() {
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (members_[i].name.ends_with(".npy")) positions_.emplace(array_name(members_[i]), i);
}

std::vector<std::string> NpzFile::names() const {
  std::vector<std::string> names;
  for (const ZipMember& member : members_)
    if (member.name.ends_with(".npy")) names.push_back(array_name(member));
  return names;
}

const ZipMember& NpzFile::member(std::string_view name) const {
  if (const auto found = positions_.find(name); found != positions_.end()) return members_[found->second];
  throw NotFound(
      fmt::format("file \"{}\": there is no array \"{}\" among its {}", file_->name(), name, positions_.size()));
}

NpyEntry NpzFile::entry(std::string_view name) const {
  const ZipMember& found = member(name);
  ZipMemberReader reader(*file_, found);
  const auto read = [&](std::span<std::byte> bytes) { reader.read(bytes); };
  const NpyHeader header =
      take_header({fmt::format("file \"{}\": array \"{}\"", file_->name(), name), found.size, read});
  return {std::string(name),    header.dtype,        header.descr, header.shape,
          header.fortran_order, found.is_deflated(), reader.left()};
}

Tensor NpzFile::read(std::string_view name) const {
  const ZipMember& found = member(name);
  ZipMemberReader reader(*file_, found);
  const auto read = [&](std::span<std::byte> bytes) { reader.read(bytes); };
  Tensor tensor = read_array({fmt::format("file \"{}\": array \"{}\"", file_->name(), name), found.size, read});
  reader.finish();
  return tensor;
}

void NpzFile::verify(std::string_view name) const { ZipMemberReader(*file_, member(name)).finish(); }

TensorTree load_npz(const std::filesystem::path& path) {
  const NpzFile file(path);
  std::vector<NamedLeaf> leaves;
  for (const std::string& name : file.names()) leaves.emplace_back(name, file.read(name));
  return tree_from_names(std::move(leaves));
}

void save_npz(const std::filesystem::path& path, const TensorTree& tree) {
  const std::vector<NamedLeaf> leaves = tree_names(tree, "save_npz");
  for (const auto& [name, tensor] : leaves) {
    tensor.view();  // Throws for what has no bytes, before anything is written.
    if (name.size() > 60'000)
      throw InvalidArgument(fmt::format("save_npz: a name of {} bytes; at most 60000 fit", name.size()));
  }
  remove_stale_temporaries(path.parent_path(), path.filename().native() + ".");
  AtomicFile file(path);
  ZipWriter zip(file);
  for (const auto& [name, tensor] : leaves)
    zip.add(name + ".npy", format_npy_header(tensor.dtype(), tensor.shape()), PinnedBytes(tensor).bytes());
  zip.finish();
  file.commit();
}

}  // namespace plimsoll
