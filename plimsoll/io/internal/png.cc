#include <zlib.h>

#include <new>

#include "plimsoll/io/internal/event_messages.h"

namespace plimsoll::internal {
namespace {

void append_big_endian(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}

void append_chunk(std::string& out, std::string_view type, std::string_view content) {
  append_big_endian(out, static_cast<std::uint32_t>(content.size()));
  const std::string body = std::string(type) + std::string(content);
  out += body;
  append_big_endian(out, static_cast<std::uint32_t>(
                             crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()))));
}

// Compresses its input piece by piece, holding only the output.
class Deflater {
 public:
  Deflater() {
    if (deflateInit(&stream_, 6) != Z_OK) throw std::bad_alloc();
  }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  ~Deflater() { deflateEnd(&stream_); }

  void add(std::span<const std::byte> bytes, int flush) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      char piece[4096];
      stream_.next_out = reinterpret_cast<Bytef*>(piece);
      stream_.avail_out = sizeof(piece);
      deflate(&stream_, flush);
      out_.append(piece, sizeof(piece) - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }
  const std::string& out() const noexcept { return out_; }

 private:
  z_stream stream_{};
  std::string out_;
};

}  // namespace

std::string encode_png(std::span<const std::byte> pixels, std::uint32_t height, std::uint32_t width,
                       std::uint32_t channels) {
  const std::size_t row = std::size_t{width} * channels;
  const std::byte not_filtered{0};
  Deflater rows;
  for (std::uint32_t y = 0; y < height; ++y) {
    rows.add({&not_filtered, 1}, Z_NO_FLUSH);
    rows.add(pixels.subspan(y * row, row), Z_NO_FLUSH);
  }
  rows.add({}, Z_FINISH);
  std::string header;
  append_big_endian(header, width);
  append_big_endian(header, height);
  header += {8, static_cast<char>(channels == 1 ? 0 : channels == 3 ? 2 : 6), 0, 0, 0};
  std::string out = "\x89PNG\r\n\x1a\n";
  append_chunk(out, "IHDR", header);
  append_chunk(out, "IDAT", rows.out());
  append_chunk(out, "IEND", "");
  return out;
}

}  // namespace plimsoll::internal
