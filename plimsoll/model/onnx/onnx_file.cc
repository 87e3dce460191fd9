#include "plimsoll/model/onnx/onnx_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/base/system_error.h"
#include "plimsoll/base/wire.h"
#include "plimsoll/device/device.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/map_storage.h"

namespace plimsoll::internal {
namespace {

struct Mapping {
  void* address = nullptr;
  std::size_t size = 0;
};

// A file that is open for reading.
class Opened {
 public:
  explicit Opened(const std::filesystem::path& path) : path_(path.native()) {
    handle_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (handle_ < 0) throw_system_error("file", path_, "open", errno);
    struct stat info = {};
    if (::fstat(handle_, &info) == 0 && S_ISREG(info.st_mode)) {
      size_ = static_cast<std::size_t>(info.st_size);
      return;
    }
    ::close(handle_);
    throw Error(fmt::format("\"{}\": is not a file", path_));
  }
  ~Opened() { ::close(handle_); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  std::size_t size() const noexcept { return size_; }
  // `size` bytes from `offset` on, a multiple of the page's size: private pages.
  Mapping map(std::size_t offset, std::size_t size, int protection) const {
    Mapping mapping{nullptr, size};
    if (size > 0)
      mapping.address =
          ::mmap(nullptr, size, protection, MAP_PRIVATE | MAP_NORESERVE, handle_, static_cast<off_t>(offset));
    if (mapping.address == MAP_FAILED) throw Error(fmt::format("\"{}\": cannot be mapped", path_));
    return mapping;
  }

 private:
  const std::string path_;
  int handle_ = -1;
  std::size_t size_ = 0;
};

constexpr std::size_t kPage = 4096;

// Of an element type that int32_data holds.
template <class T>
T narrowed(std::uint64_t number) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
    return std::bit_cast<T>(static_cast<std::uint16_t>(number));
  else
    return static_cast<T>(static_cast<std::int64_t>(number));
}

// Writes numbers as they come and counts them; more than there is room for are only counted.
template <class T>
class Filler {
 public:
  explicit Filler(const TensorView& out) : out_(reinterpret_cast<T*>(out.bytes())), room_(out.shape().size()) {}
  void add(T value) noexcept {
    if (count_ < room_) out_[count_] = value;
    ++count_;
  }
  std::size_t count() const noexcept { return count_; }

 private:
  T* const out_;
  const std::size_t room_;
  std::size_t count_ = 0;
};

bool add_varints(std::string_view packed, auto&& add) {
  for (std::uint64_t number = 0; !packed.empty(); add(number))
    if (!take_varint(packed, number)) return false;
  return true;
}

}  // namespace

std::shared_ptr<const OnnxFile> OnnxFile::open(const std::filesystem::path& path) {
  const Opened opened(path);
  const Mapping mapping = opened.map(0, opened.size(), PROT_READ);
  std::shared_ptr<OnnxFile> file(new OnnxFile);
  file->name_ = path.native();
  file->folder_ = path.parent_path();
  file->bytes_ = {static_cast<const char*>(mapping.address), mapping.size};
  file->mapped_ = mapping.address;
  return file;
}

OnnxFile::~OnnxFile() {
  if (mapped_) ::munmap(mapped_, bytes_.size());
}

void OnnxFile::corrupt(const onnx::TensorProto& proto, std::string_view what) const {
  throw Corruption(fmt::format("\"{}\": tensor \"{}\" {} (offset {})", name_, proto.name, what, proto.offset));
}

Tensor OnnxFile::tensor(const onnx::TensorProto& proto) const {
  const std::optional<DType> dtype = onnx::dtype_of(proto.type);
  if (!dtype)
    throw Unsupported(fmt::format("\"{}\": tensor \"{}\" has the unsupported element type {}", name_, proto.name,
                                  onnx::element_type_name(proto.type)));
  Shape shape;
  try {
    shape = Shape(std::span<const std::int64_t>(proto.dims));
  } catch (const InvalidArgument& error) {
    corrupt(proto, error.what());
  }
  if (proto.is_external) return external_tensor(proto, shape, *dtype);
  const std::size_t count = shape.size(), bytes = count * size_of(*dtype);
  if (!proto.raw.empty() ? proto.raw.size() != bytes : bytes > 64 * bytes_.size() + 64)
    corrupt(proto, fmt::format("has {} bytes for its {}", proto.raw.size(), shape.to_string()));
  Tensor result = make_tensor({.op = "onnx"}, shape, *dtype, current_device());
  fill(proto, HostWrite(result));
  return result;
}

Tensor OnnxFile::tensor(const onnx::TensorProto& proto, const std::vector<std::int64_t>& order) const {
  if (order.empty() || order.size() != proto.dims.size()) return tensor(proto);
  const std::optional<DType> dtype = onnx::dtype_of(proto.type);
  if (!dtype || proto.raw.empty() || proto.is_external) return transpose(tensor(proto), order);
  const Shape shape(std::span<const std::int64_t>(proto.dims));
  const std::size_t width = size_of(*dtype), rank = order.size();
  if (proto.raw.size() != shape.size() * width)
    corrupt(proto, fmt::format("has {} bytes for its {}", proto.raw.size(), shape.to_string()));
  std::vector<std::int64_t> sizes, strides, at(rank, 0);
  const Strides of_file = row_major_strides(shape);
  for (const std::int64_t axis : order) {
    sizes.push_back(shape[static_cast<std::size_t>(axis)]);
    strides.push_back(of_file[static_cast<std::size_t>(axis)]);
  }
  Tensor result = make_tensor({.op = "onnx"}, Shape(sizes), *dtype, current_device());
  const HostWrite written(result);
  std::byte* out = written.bytes();
  if (rank == 2) {  // Square by square, so that both sides stay in the cache.
    constexpr std::int64_t kSide = 32;
    const std::int64_t rows = sizes[0], columns = sizes[1];
    for (std::int64_t r = 0; r < rows; r += kSide)
      for (std::int64_t c = 0; c < columns; c += kSide)
        for (std::int64_t i = r; i < std::min(rows, r + kSide); ++i)
          for (std::int64_t j = c; j < std::min(columns, c + kSide); ++j)
            std::memcpy(out + static_cast<std::size_t>(i * columns + j) * width,
                        proto.raw.data() + static_cast<std::size_t>(i * strides[0] + j * strides[1]) * width, width);
    return result;
  }
  std::int64_t from = 0;
  for (std::size_t i = 0; i < shape.size(); ++i, out += width) {
    std::memcpy(out, proto.raw.data() + static_cast<std::size_t>(from) * width, width);
    for (std::size_t axis = rank; axis-- > 0;) {
      from += strides[axis];
      if (++at[axis] < sizes[axis]) break;
      from -= strides[axis] * sizes[axis];
      at[axis] = 0;
    }
  }
  return result;
}

void OnnxFile::forget(const onnx::TensorProto& proto) const noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(proto.raw.data());
  const std::uintptr_t begin = (first + kPage - 1) / kPage * kPage, end = (first + proto.raw.size()) / kPage * kPage;
  if (mapped_ && !proto.raw.empty() && begin < end)
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // The file still has them.
}

void OnnxFile::fill(const onnx::TensorProto& proto, const TensorView& out) const {
  if (!proto.raw.empty()) {
    std::memcpy(out.bytes(), proto.raw.data(), proto.raw.size());
    return;
  }
  visit_dtype(out.dtype(), [&]<class T>(TypeTag<T>) {
    Filler<T> filler(out);
    bool whole = true;
    const auto add = [&](std::uint64_t number) { filler.add(narrowed<T>(number)); };
    if constexpr (std::is_same_v<T, float>) {
      for (const std::string_view packed : proto.floats) {
        for (std::size_t i = 0; i + 4 <= packed.size(); i += 4) filler.add(load_number<float>(packed.data() + i));
        whole = whole && packed.size() % 4 == 0;
      }
      for (const std::uint64_t bits : proto.numbers) filler.add(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    } else if constexpr (std::is_same_v<T, double>) {
      for (const std::string_view packed : proto.doubles) {
        for (std::size_t i = 0; i + 8 <= packed.size(); i += 8) filler.add(load_number<double>(packed.data() + i));
        whole = whole && packed.size() % 8 == 0;
      }
      for (const std::uint64_t bits : proto.numbers) filler.add(std::bit_cast<double>(bits));
    } else {
      for (const std::string_view packed : std::is_same_v<T, std::int64_t> ? proto.int64s : proto.int32s)
        whole = add_varints(packed, add) && whole;
      for (const std::uint64_t number : proto.numbers) add(number);
    }
    if (!whole || filler.count() != out.shape().size())
      corrupt(proto, fmt::format("has {} elements for its {}", filler.count(), out.shape().to_string()));
  });
}

Tensor OnnxFile::external_tensor(const onnx::TensorProto& proto, const Shape& shape, DType dtype) const {
  const auto entry = [&](const char* key) {
    const auto found = proto.external.find(key);
    return found == proto.external.end() ? std::string() : found->second;
  };
  const auto number = [&](const char* key, std::uint64_t missing) {
    const std::string text = entry(key);
    if (text.empty()) return missing;
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      corrupt(proto, fmt::format("has the {} \"{}\" in its external data", key, text));
    return value;
  };
  const std::filesystem::path location = std::filesystem::path(entry("location")).lexically_normal();
  if (mapped_ == nullptr || location.empty() || location.is_absolute() || *location.begin() == "..")
    corrupt(proto, fmt::format("has its data at \"{}\", which is not in the file's folder", location.native()));
  const std::size_t bytes = shape.size() * size_of(dtype);
  const std::uint64_t offset = number("offset", 0), length = number("length", bytes);
  const Opened opened(folder_ / location);
  if (length != bytes || offset > opened.size() || length > opened.size() - offset)
    corrupt(proto, fmt::format("has {} bytes from {} on in \"{}\", which has {}; its {} takes {}", length, offset,
                               location.native(), opened.size(), shape.to_string(), bytes));
  const std::size_t before = offset % kPage;
  const Mapping mapping =
      opened.map(offset - before, before + bytes, PROT_READ | PROT_WRITE);  // Written pages are ours.
  const auto unmap = [mapping](void*) {
    if (mapping.address) ::munmap(mapping.address, mapping.size);
  };
  const std::shared_ptr<void> ended(nullptr, unmap);
  return external_tensor(static_cast<char*>(mapping.address) + before, shape, dtype, [ended](void*) {});
}

Tensor OnnxFile::external_tensor(char* first, const Shape& shape, DType dtype, std::function<void(void*)> unmap) {
  const std::size_t bytes = shape.size() * size_of(dtype);
  Device& device = current_device();
  if (bytes > 0 && reinterpret_cast<std::uintptr_t>(first) % size_of(dtype) == 0) {
    const Tensor mapped = make_tensor_on(wrap_unchanging(current_host_device(), first, bytes, std::move(unmap)), 0,
                                         shape, dtype, {.op = "onnx", .category = Category::kParameters});
    return device.is_host() ? mapped : mapped.to(device.name());
  }
  Tensor copied = make_tensor({.op = "onnx"}, shape, dtype, device);
  if (bytes > 0) std::memcpy(HostWrite(copied).bytes(), first, bytes);
  return copied;
}

Tensor OnnxFile::tensor(const onnx::SparseTensorProto& proto) const {
  const Tensor values = tensor(proto.values), indices = tensor(proto.indices);
  Shape shape;
  try {
    shape = Shape(std::span<const std::int64_t>(proto.dims));
  } catch (const InvalidArgument& error) {
    corrupt(proto.values, error.what());
  }
  const std::size_t rank = shape.rank(), count = values.size();
  const bool linear = indices.rank() == 1;
  if (indices.dtype() != i64 || values.rank() != 1 || indices.size() != count * (linear ? 1 : rank))
    corrupt(proto.values, fmt::format("has indices {} for {} sparse values", indices.shape().to_string(), count));
  if (shape.size() * size_of(values.dtype()) > (std::size_t{1} << 30))
    throw Unsupported(
        fmt::format("\"{}\": the sparse tensor \"{}\" of {} is unsupported: dense, it takes more than 1 GiB", name_,
                    proto.values.name, shape.to_string()));
  Tensor dense = zeros(shape, values.dtype()).clone();
  const std::vector<std::int64_t> places = indices.to_vector<std::int64_t>();
  const Strides strides = row_major_strides(shape);
  const std::size_t width = size_of(values.dtype());
  const HostRead from(values);
  const HostWrite to(dense, HostWrite::Elements::kKept);
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t place = linear ? places[i] : 0;
    for (std::size_t axis = 0; !linear && axis < rank; ++axis) {
      const std::int64_t index = places[i * rank + axis];
      if (index < 0 || index >= shape[axis]) corrupt(proto.values, fmt::format("has the sparse index {}", index));
      place += index * strides[axis];
    }
    if (place < 0 || static_cast<std::size_t>(place) >= shape.size())
      corrupt(proto.values, fmt::format("has the sparse index {}", place));
    std::memcpy(to.bytes() + static_cast<std::size_t>(place) * width, from.bytes() + i * width, width);
  }
  return dense;
}

}  // namespace plimsoll::internal
