#include "plimsoll/io/internal/hdf5_data.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/io/internal/pieces.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {
namespace {

using Kind = Hdf5Layout::Kind;
constexpr std::uint64_t kMaxChunkBytes = 64_MiB;

[[noreturn]] void refuse(const Hdf5Bytes& bytes, const Hdf5Object& object, const std::string& what) {
  throw Unsupported(fmt::format("file \"{}\": dataset \"{}\" {}", bytes.file.name(), object.path, what));
}

// Room for a chunk, charged as scratch.
class Scratch {
 public:
  explicit Scratch(std::uint64_t bytes)
      : tensor_(make_tensor({.op = "hdf5 chunk", .category = Category::kWorkspace},
                            Shape({static_cast<std::int64_t>(bytes)}), u8, current_host_device())) {}
  std::span<std::byte> bytes() { return {writable(tensor_).bytes(), tensor_.nbytes()}; }

 private:
  Tensor tensor_;
};

class ChunkReader {
 public:
  ChunkReader(const Hdf5Bytes& bytes, const Hdf5Object& object, std::span<std::byte> out)
      : bytes_(bytes), object_(object), data_(*object.dataset), out_(out), element_(data_.type.size) {
    const Shape& shape = *data_.shape;
    if (data_.layout.chunk.size() != shape.rank() || shape.rank() == 0)
      bytes_.corrupt(object.address, fmt::format("dataset \"{}\": chunks of {} axes for {}", object.path,
                                                 data_.layout.chunk.size(), shape.to_string()));
    chunk_bytes_ = element_;
    for (std::size_t i = 0; i < shape.rank(); ++i) {
      const std::uint64_t size = data_.layout.chunk[i];
      if (size == 0) bytes_.corrupt(object.address, fmt::format("dataset \"{}\": an empty chunk", object.path));
      if (chunk_bytes_ > kMaxChunkBytes || size > kMaxChunkBytes)
        refuse(bytes_, object_, fmt::format("has chunks of more than {}", format_bytes(kMaxChunkBytes)));
      chunk_bytes_ *= size;
    }
    if (chunk_bytes_ > kMaxChunkBytes)
      refuse(bytes_, object_, fmt::format("has chunks of more than {}", format_bytes(kMaxChunkBytes)));
    expected_ = 1;
    for (std::size_t i = 0; i < shape.rank(); ++i)
      expected_ *= (static_cast<std::uint64_t>(shape[i]) + data_.layout.chunk[i] - 1) / data_.layout.chunk[i];
    for (const Hdf5Filter& filter : data_.filters)
      if (filter.id < Hdf5Filter::kDeflate || filter.id > Hdf5Filter::kFletcher)
        refuse(bytes_, object_, fmt::format("has filter {}; deflate and shuffle are read", filter.id));
  }

  void run() {
    Scratch whole(chunk_bytes_), other(data_.filters.empty() ? 1 : chunk_bytes_);
    whole_ = whole.bytes(), other_ = other.bytes();
    read_node(data_.layout.address, -1);
    if (found_ != expected_)
      refuse(bytes_, object_, fmt::format("has {} of its {} chunks; the others were never written", found_, expected_));
  }

 private:
  void read_node(std::uint64_t address, int level) {
    if (!seen_.insert(address).second) bytes_.corrupt(std::min(address, bytes_.size), "a tree of chunks has a cycle");
    Hdf5Cursor head = bytes_.block(address, 24, "a tree of chunks");
    head.expect(std::string_view("TREE\1", 5), "a tree of chunks");
    const int here = head.byte();
    if (level >= 0 && here != level) head.corrupt(fmt::format("a tree node of level {} instead of {}", here, level));
    const std::size_t count = head.number<std::uint16_t>(), axes = data_.layout.chunk.size() + 1;
    Hdf5Cursor in = bytes_.block(address + 24, count * (16 + 8 * axes), "a tree of chunks");
    for (std::size_t i = 0; i < count; ++i) {
      const auto stored = in.number<std::uint32_t>(), mask = in.number<std::uint32_t>();
      std::vector<std::uint64_t> place;
      for (std::size_t axis = 0; axis < axes; ++axis) place.push_back(in.number<std::uint64_t>());
      const auto child = in.number<std::uint64_t>();
      place.pop_back();
      if (here > 0)
        read_node(child, here - 1);
      else
        read_chunk(child, stored, mask, place);
    }
  }

  void read_chunk(std::uint64_t address, std::uint64_t stored, std::uint32_t mask,
                  const std::vector<std::uint64_t>& place) {
    for (std::size_t axis = 0; axis < place.size(); ++axis)
      if (place[axis] % data_.layout.chunk[axis] != 0 ||
          place[axis] >= static_cast<std::uint64_t>((*data_.shape)[axis]))
        bytes_.corrupt(std::min(address, bytes_.size), "a chunk outside of its dataset");
    if (found_ > 0 && !(last_ < place)) bytes_.corrupt(std::min(address, bytes_.size), "chunks that are not in order");
    last_ = place;
    ++found_;
    bytes_.require(address, stored, "a chunk");
    unpack(address, stored, mask);
    place_rows(place);
  }

  // Undoes the filters, the last one first; the result is in whole_.
  void unpack(std::uint64_t address, std::uint64_t stored, std::uint32_t mask) {
    std::uint64_t size = stored;
    bool in_file = true;
    for (std::size_t i = data_.filters.size(); i-- > 0;) {
      const std::uint16_t id = data_.filters[i].id;
      if ((mask >> i & 1) != 0) continue;
      if (id == Hdf5Filter::kFletcher) {
        if (size < 4) bytes_.corrupt(address, "a chunk without its checksum");
        size -= 4;
      } else if (id == Hdf5Filter::kDeflate) {
        if (!in_file) refuse(bytes_, object_, "has filters in an order that is not read");
        inflate_from(address, size);
        size = chunk_bytes_;
        in_file = false;
      } else {
        if (in_file) load(address, size);
        in_file = false;
        unshuffle();
      }
    }
    if (in_file) load(address, size);
  }
  void load(std::uint64_t address, std::uint64_t size) {
    if (size != chunk_bytes_)
      bytes_.corrupt(address, fmt::format("a chunk of {} bytes instead of {}", size, chunk_bytes_));
    bytes_.file.read(bytes_.base + address, whole_);
  }
  void inflate_from(std::uint64_t address, std::uint64_t size) {
    z_stream stream{};
    if (inflateInit(&stream) != Z_OK) throw std::bad_alloc();
    struct End {
      z_stream& stream;
      ~End() { inflateEnd(&stream); }
    } end{stream};
    stream.next_out = reinterpret_cast<Bytef*>(whole_.data());
    stream.avail_out = static_cast<uInt>(whole_.size());
    std::uint64_t taken = 0;
    int result = Z_OK;
    while (result == Z_OK && (taken < size || stream.avail_out == 0)) {
      const std::size_t piece = std::min<std::uint64_t>(size - taken, other_.size());
      bytes_.file.read(bytes_.base + address + taken, other_.first(piece));
      taken += piece;
      stream.next_in = reinterpret_cast<Bytef*>(other_.data());
      stream.avail_in = static_cast<uInt>(piece);
      result = inflate(&stream, Z_NO_FLUSH);
    }
    if (result != Z_STREAM_END || stream.avail_out != 0) bytes_.corrupt(address, "a compressed chunk is damaged");
  }
  void unshuffle() {
    const std::size_t count = static_cast<std::size_t>(chunk_bytes_ / element_);
    for (std::size_t byte = 0; byte < element_; ++byte)
      for (std::size_t i = 0; i < count; ++i) other_[i * element_ + byte] = whole_[byte * count + i];
    std::memcpy(whole_.data(), other_.data(), whole_.size());
  }

  // Copies the chunk's rows that are inside the dataset.
  void place_rows(const std::vector<std::uint64_t>& place) {
    const Shape& shape = *data_.shape;
    const std::size_t rank = place.size(), last = rank - 1;
    const std::uint64_t columns = data_.layout.chunk[last],
                        inside =
                            std::min<std::uint64_t>(columns, static_cast<std::uint64_t>(shape[last]) - place[last]);
    std::vector<std::uint64_t> at(rank, 0);
    for (std::uint64_t row = 0; row * columns * element_ < chunk_bytes_; ++row) {
      std::uint64_t rest = row, target = 0;
      bool within = true;
      for (std::size_t axis = last; axis-- > 0;) {
        at[axis] = rest % data_.layout.chunk[axis];
        rest /= data_.layout.chunk[axis];
      }
      for (std::size_t axis = 0; axis < last; ++axis) {
        const std::uint64_t index = place[axis] + at[axis];
        within = within && index < static_cast<std::uint64_t>(shape[axis]);
        target = target * static_cast<std::uint64_t>(shape[axis]) + index;
      }
      if (!within) continue;
      target = target * static_cast<std::uint64_t>(shape[last]) + place[last];
      std::memcpy(out_.data() + target * element_, whole_.data() + row * columns * element_,
                  static_cast<std::size_t>(inside * element_));
    }
  }

  const Hdf5Bytes& bytes_;
  const Hdf5Object& object_;
  const Hdf5Object::Dataset& data_;
  const std::span<std::byte> out_;
  const std::size_t element_;
  std::uint64_t chunk_bytes_ = 0, expected_ = 0, found_ = 0;
  std::span<std::byte> whole_, other_;
  std::vector<std::uint64_t> last_;
  std::set<std::uint64_t> seen_;
};

}  // namespace

std::uint64_t hdf5_data_bytes(const Hdf5Bytes& bytes, const Hdf5Object& object) {
  const Hdf5Object::Dataset& data = *object.dataset;
  std::uint64_t size = 0;
  if (!data.shape || data.shape->size() == 0) return 0;
  if (__builtin_mul_overflow(std::uint64_t{data.shape->size()}, std::uint64_t{data.type.size}, &size))
    bytes.corrupt(object.address, fmt::format("dataset \"{}\" has more than 2^64 bytes", object.path));
  if (data.layout.kind == Kind::kChunked) {
    const bool packed = !data.filters.empty();
    if (size / (packed ? 1040 : 1) > bytes.size)  // Deflate cannot do better than 1032 to 1.
      bytes.corrupt(object.address, fmt::format("dataset \"{}\": {} bytes are more than a file of {} can hold",
                                                object.path, size, bytes.size));
  } else if (data.layout.kind != Kind::kOther) {
    if (data.layout.address == kHdf5Nowhere) refuse(bytes, object, "has no bytes; it was never written");
    if (data.layout.size != size)
      bytes.corrupt(object.address,
                    fmt::format("dataset \"{}\" has {} bytes instead of {}", object.path, data.layout.size, size));
    bytes.require(data.layout.address, size, "a dataset");
  }
  return size;
}

void require_hdf5_layout(const Hdf5Bytes& bytes, const Hdf5Object& object) {
  if (object.dataset->layout.kind == Kind::kOther)
    refuse(bytes, object, "is laid out in a form that is not read; write it with libver=\"earliest\"");
}

void read_hdf5_data(const Hdf5Bytes& bytes, const Hdf5Object& object, std::span<std::byte> out) {
  const Hdf5Object::Dataset& data = *object.dataset;
  require_hdf5_layout(bytes, object);
  if (out.empty()) return;
  if (data.layout.kind == Kind::kChunked)
    ChunkReader(bytes, object, out).run();
  else
    bytes.file.read(bytes.base + data.layout.address, out);
  if (data.type.big_endian) swap_bytes(out, data.type.size);
  if (data.type.dtype == boolean) make_bools(out);
}

}  // namespace plimsoll::internal
