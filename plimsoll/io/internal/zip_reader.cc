#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <set>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/wire.h"
#include "plimsoll/io/internal/pieces.h"
#include "plimsoll/io/internal/zip.h"

namespace plimsoll::internal {
namespace {

constexpr std::uint32_t kLocalMark = 0x04034b50, kCentralMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr std::uint32_t kEnd64Mark = 0x06064b50, kLocator64Mark = 0x07064b50;
constexpr std::size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kLocatorBytes = 20, kEnd64Bytes = 56;
constexpr std::uint64_t kMaxDirectoryBytes = 256_MiB;
constexpr std::uint32_t kInExtra = 0xffffffffu;  // "See the zip64 field."

std::uint16_t half_at(std::string_view bytes, std::size_t at) { return load_number<std::uint16_t>(bytes.data() + at); }
std::uint32_t word_at(std::string_view bytes, std::size_t at) { return load_number<std::uint32_t>(bytes.data() + at); }
std::uint64_t long_at(std::string_view bytes, std::size_t at) { return load_number<std::uint64_t>(bytes.data() + at); }

struct Directory {
  std::uint64_t offset = 0, size = 0, members = 0;
};

Directory find_directory(const InputFile& file) {
  if (file.size() < kEndBytes) file.corrupt(0, fmt::format("has {} bytes, too few for a zip archive", file.size()));
  const std::uint64_t tail_bytes = std::min<std::uint64_t>(file.size(), kEndBytes + 65535);
  const std::uint64_t tail_offset = file.size() - tail_bytes;
  const std::string tail = file.read_string(tail_offset, tail_bytes, tail_bytes);
  for (std::size_t at = tail.size() - kEndBytes + 1; at-- > 0;) {
    if (word_at(tail, at) != kEndMark || half_at(tail, at + 20) != tail.size() - at - kEndBytes) continue;
    Directory found{word_at(tail, at + 16), word_at(tail, at + 12), half_at(tail, at + 10)};
    if (half_at(tail, at + 4) != 0 || half_at(tail, at + 6) != 0)
      if (half_at(tail, at + 4) != 0xffff)
        throw Unsupported(fmt::format("file \"{}\": a zip archive in several files", file.name()));
    const std::uint64_t end = tail_offset + at;
    if (end < kLocatorBytes) return found;
    const std::string locator = file.read_string(end - kLocatorBytes, kLocatorBytes, kLocatorBytes);
    if (word_at(locator, 0) != kLocator64Mark) return found;
    const std::string record = file.read_string(long_at(locator, 8), kEnd64Bytes, kEnd64Bytes);
    if (word_at(record, 0) != kEnd64Mark) file.corrupt(long_at(locator, 8), "the zip64 record is damaged");
    return {long_at(record, 48), long_at(record, 40), long_at(record, 32)};
  }
  file.corrupt(tail_offset, "is not a zip archive, or its end is missing");
}

// Sizes that did not fit 32 bits.
void take_extra(const InputFile& file, std::string_view extra, ZipMember& member, std::uint64_t at) {
  while (extra.size() >= 4) {
    const std::size_t id = half_at(extra, 0), size = half_at(extra, 2);
    if (size > extra.size() - 4) file.corrupt(at, "an extra field does not fit");
    std::string_view field = extra.substr(4, size);
    extra.remove_prefix(4 + size);
    if (id != 1) continue;
    for (std::uint64_t* value : {&member.size, &member.compressed_size, &member.header_offset}) {
      if (*value != kInExtra) continue;
      if (field.size() < 8) file.corrupt(at, "a zip64 field is too short");
      *value = long_at(field, 0);
      field.remove_prefix(8);
    }
  }
}

// Each member ends where the next begins, or the directory. Otherwise bytes shared by several members would be counted,
// read and unpacked once for each of them.
void find_ends(const InputFile& file, std::vector<ZipMember>& members, std::uint64_t directory) {
  std::vector<ZipMember*> in_order;
  for (ZipMember& member : members) in_order.push_back(&member);
  std::sort(in_order.begin(), in_order.end(),
            [](const ZipMember* a, const ZipMember* b) { return a->header_offset < b->header_offset; });
  for (std::size_t i = 0; i < in_order.size(); ++i) {
    ZipMember& member = *in_order[i];
    member.end = i + 1 < in_order.size() ? in_order[i + 1]->header_offset : directory;
    if (member.end - member.header_offset < kLocalBytes + member.compressed_size)
      file.corrupt(member.header_offset,
                   fmt::format("member \"{}\" has {} bytes, but \"{}\" begins at {}; they overlap", member.name,
                               member.compressed_size,
                               i + 1 < in_order.size() ? in_order[i + 1]->name : "the directory", member.end));
    // Deflate cannot do better than 1032 to 1: a larger claim is false, and nothing is allocated for it.
    if (member.is_deflated() && member.size / 1040 > member.compressed_size)
      file.corrupt(member.header_offset, fmt::format("member \"{}\": {} bytes cannot unpack to {}", member.name,
                                                     member.compressed_size, member.size));
  }
}

}  // namespace

std::vector<ZipMember> read_zip_directory(const InputFile& file) {
  const Directory place = find_directory(file);
  const std::string directory = file.read_string(place.offset, place.size, kMaxDirectoryBytes);
  std::vector<ZipMember> members;
  std::set<std::string> names;
  for (std::size_t at = 0; at < directory.size();) {
    const std::uint64_t here = place.offset + at;
    const std::string_view left = std::string_view(directory).substr(at);
    if (left.size() < kCentralBytes || word_at(left, 0) != kCentralMark)
      file.corrupt(here, "the archive's directory is damaged");
    const std::size_t name_size = half_at(left, 28), extra_size = half_at(left, 30);
    const std::size_t whole = kCentralBytes + name_size + extra_size + half_at(left, 32);
    if (whole > left.size()) file.corrupt(here, "the archive's directory is damaged");
    ZipMember member{std::string(left.substr(kCentralBytes, name_size)),
                     word_at(left, 42),
                     word_at(left, 20),
                     word_at(left, 24),
                     word_at(left, 16),
                     half_at(left, 10),
                     half_at(left, 8)};
    take_extra(file, left.substr(kCentralBytes + name_size, extra_size), member, here);
    if (member.header_offset > place.offset || member.compressed_size > place.offset - member.header_offset)
      file.corrupt(here, fmt::format("member \"{}\" does not fit the archive", member.name));
    if (member.method == 0 && member.size != member.compressed_size)
      file.corrupt(here, fmt::format("member \"{}\" is stored, but its two sizes differ", member.name));
    if (!names.insert(member.name).second) file.corrupt(here, fmt::format("member \"{}\" appears twice", member.name));
    members.push_back(std::move(member));
    at += whole;
  }
  if (members.size() != place.members)
    file.corrupt(place.offset,
                 fmt::format("the directory has {} members instead of {}", members.size(), place.members));
  find_ends(file, members, place.offset);
  return members;
}

struct ZipMemberReader::Inflater {
  Staging staging{64_KiB};
  z_stream stream{};
  Inflater() {
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
};

ZipMemberReader::ZipMemberReader(const InputFile& file, const ZipMember& member) : file_(file), member_(member) {
  if ((member.flags & 1) != 0 || (member.method != 0 && member.method != 8))
    throw Unsupported(fmt::format(
        "file \"{}\": member \"{}\" is encrypted or compressed by method {}; stored and deflated ones are read",
        file.name(), member.name, member.method));
  const std::string local = file.read_string(member.header_offset, kLocalBytes, kLocalBytes);
  if (word_at(local, 0) != kLocalMark) corrupt(member.header_offset, "its header is damaged");
  data_offset_ = member.header_offset + kLocalBytes + half_at(local, 26) + half_at(local, 28);
  if (data_offset_ > member.end || member.compressed_size > member.end - data_offset_)
    corrupt(data_offset_,
            fmt::format("its {} bytes do not end at {}, where the next begins", member.compressed_size, member.end));
  if (member.is_deflated()) inflater_ = std::make_unique<Inflater>();
}

ZipMemberReader::~ZipMemberReader() = default;

void ZipMemberReader::corrupt(std::uint64_t offset, std::string_view what) const {
  file_.corrupt(offset, fmt::format("member \"{}\": {}", member_.name, what));
}

void ZipMemberReader::read(std::span<std::byte> bytes) {
  if (bytes.size() > left())
    corrupt(data_offset_ + consumed_, fmt::format("ends {} bytes too early", bytes.size() - left()));
  for_each_piece(bytes.size(), kPieceBytes, [&](std::uint64_t at, std::size_t size) {
    const std::span<std::byte> piece = bytes.subspan(static_cast<std::size_t>(at), size);
    if (inflater_)
      inflate_into(piece);
    else
      file_.read(data_offset_ + position_, piece);
    position_ += size;
    crc_ =
        static_cast<std::uint32_t>(crc32(crc_, reinterpret_cast<const Bytef*>(piece.data()), static_cast<uInt>(size)));
  });
}

void ZipMemberReader::inflate_into(std::span<std::byte> bytes) {
  z_stream& stream = inflater_->stream;
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  while (stream.avail_out > 0) {
    if (stream.avail_in == 0) {
      const std::size_t size =
          std::min<std::uint64_t>(inflater_->staging.bytes().size(), member_.compressed_size - consumed_);
      if (size == 0) corrupt(data_offset_ + consumed_, "its compressed bytes end too early");
      file_.read(data_offset_ + consumed_, inflater_->staging.bytes().first(size));
      consumed_ += size;
      stream.next_in = reinterpret_cast<Bytef*>(inflater_->staging.bytes().data());
      stream.avail_in = static_cast<uInt>(size);
    }
    const int result = inflate(&stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END && stream.avail_out > 0)
      corrupt(data_offset_ + consumed_, "its compressed bytes end too early");
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      corrupt(data_offset_ + consumed_ - stream.avail_in, "its compressed bytes are damaged");
  }
}

void ZipMemberReader::finish() {
  if (left() > 0) {
    const Staging staging(64_KiB);
    for_each_piece(left(), staging.bytes().size(),
                   [&](std::uint64_t, std::size_t size) { read(staging.bytes().first(size)); });
  }
  if (crc_ != member_.crc)
    corrupt(data_offset_, fmt::format("its checksum is {:#010x} instead of {:#010x}", crc_, member_.crc));
}

}  // namespace plimsoll::internal
