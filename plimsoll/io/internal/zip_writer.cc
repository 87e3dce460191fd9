#include <zlib.h>

#include "plimsoll/base/rounding.h"
#include "plimsoll/base/wire.h"
#include "plimsoll/io/internal/pieces.h"
#include "plimsoll/io/internal/zip.h"

namespace plimsoll::internal {
namespace {

constexpr std::uint64_t kLarge = 0xffffffffu;  // Larger sizes are stored in the zip64 field.
constexpr std::uint16_t kUtf8 = 0x800;         // Flag: names are UTF-8.
constexpr std::uint16_t kDate = (1 << 5) | 1;  // 1980-01-01: files do not depend on when they were written.

void append_halves(std::string& out, std::initializer_list<std::uint16_t> values) {
  for (const std::uint16_t value : values) append_number(out, value);
}
void append_words(std::string& out, std::initializer_list<std::uint64_t> values) {
  for (const std::uint64_t value : values) append_number(out, static_cast<std::uint32_t>(std::min(value, kLarge)));
}

// The zip64 field for those that did not fit.
std::string extra_field(std::initializer_list<std::uint64_t> values) {
  std::string body;
  for (const std::uint64_t value : values) append_number(body, value);
  std::string out;
  if (!body.empty()) append_halves(out, {1, static_cast<std::uint16_t>(body.size())});
  return out + body;
}

// A field that readers skip, of at least 6 bytes, so that what follows `before` bytes is aligned.
std::string padding_field(std::uint64_t before, std::size_t alignment) {
  const std::uint64_t end = round_up(before + 6, std::uint64_t{alignment});
  std::string out;
  append_halves(out, {0xd935, static_cast<std::uint16_t>(end - before - 4), static_cast<std::uint16_t>(alignment)});
  out.resize(static_cast<std::size_t>(end - before), '\0');
  return out;
}

std::string local_header(const ZipMember& member, std::size_t alignment = 1) {
  const bool large = member.size >= kLarge;
  std::string extra = large ? extra_field({member.size, member.size}) : "";
  if (alignment > 1) extra += padding_field(member.header_offset + 30 + member.name.size() + extra.size(), alignment);
  const std::uint64_t size = large ? kLarge : member.size;
  std::string out;
  append_words(out, {0x04034b50});
  append_halves(out, {static_cast<std::uint16_t>(large ? 45 : 20), kUtf8, 0, 0, kDate});
  append_words(out, {member.crc, size, size});
  append_halves(out, {static_cast<std::uint16_t>(member.name.size()), static_cast<std::uint16_t>(extra.size())});
  return out + member.name + extra;
}

std::string central_header(const ZipMember& member) {
  const bool large = member.size >= kLarge, far = member.header_offset >= kLarge;
  std::string extra;
  if (large || far) {
    extra = large && far ? extra_field({member.size, member.size, member.header_offset})
            : large      ? extra_field({member.size, member.size})
                         : extra_field({member.header_offset});
  }
  std::string out;
  append_words(out, {0x02014b50});
  const auto version = static_cast<std::uint16_t>(large || far ? 45 : 20);
  append_halves(out, {version, version, kUtf8, 0, 0, kDate});
  append_words(out, {member.crc, member.size, member.size});
  append_halves(out,
                {static_cast<std::uint16_t>(member.name.size()), static_cast<std::uint16_t>(extra.size()), 0, 0, 0});
  append_words(out, {0, member.header_offset});
  return out + member.name + extra;
}

std::uint32_t extend_crc(std::uint32_t crc, std::span<const std::byte> bytes) {
  for_each_piece(bytes.size(), kPieceBytes, [&](std::uint64_t at, std::size_t size) {
    crc = static_cast<std::uint32_t>(
        crc32(crc, reinterpret_cast<const Bytef*>(bytes.data() + at), static_cast<uInt>(size)));
  });
  return crc;
}

}  // namespace

void ZipWriter::add(const std::string& name, std::string_view head, std::span<const std::byte> body) {
  ZipMember member{name, file_.bytes_written(), 0, head.size() + body.size(), 0, 0, kUtf8};
  member.crc = extend_crc(extend_crc(0, std::as_bytes(std::span(head))), body);
  file_.write(local_header(member));
  file_.write(head);
  file_.write(body);
  members_.push_back(std::move(member));
}

void ZipWriter::add_parts(const std::string& name, FunctionRef<void(Sink)> parts, std::size_t alignment) {
  ZipMember member{name, file_.bytes_written(), 0, 0, 0, 0, kUtf8};
  parts([&](std::span<const std::byte> part) {
    member.size += part.size();
    member.crc = extend_crc(member.crc, part);
  });
  file_.write(local_header(member, alignment));
  parts([&](std::span<const std::byte> part) { file_.write(part); });
  members_.push_back(std::move(member));
}

void ZipWriter::finish() {
  const std::uint64_t begin = file_.bytes_written();
  for (const ZipMember& member : members_) file_.write(central_header(member));
  const std::uint64_t size = file_.bytes_written() - begin, count = members_.size(), end = file_.bytes_written();
  std::string out;
  if (count >= 0xffff || begin >= kLarge || size >= kLarge) {
    append_words(out, {0x06064b50});
    append_number(out, std::uint64_t{44});
    append_halves(out, {45, 45});
    append_words(out, {0, 0});
    for (const std::uint64_t value : {count, count, size, begin}) append_number(out, value);
    append_words(out, {0x07064b50, 0});
    append_number(out, end);
    append_words(out, {1});
  }
  append_words(out, {0x06054b50});
  const auto short_count = static_cast<std::uint16_t>(std::min<std::uint64_t>(count, 0xffff));
  append_halves(out, {0, 0, short_count, short_count});
  append_words(out, {size, begin});
  append_halves(out, {0});
  file_.write(out);
}

}  // namespace plimsoll::internal
