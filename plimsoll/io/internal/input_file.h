// InputFile: reads bytes at offsets of a file (or of memory, for tests), with the file's name in every error.
//
//   InputFile file("model.safetensors");
//   file.size();
//   file.read(offset, bytes);                 // all of them, or Corruption: model.safetensors ends at 12, ...
//
// Nothing is trusted: reading beyond the end throws Corruption, never returns less. Thread safety: read() may run on
// several threads at once. Cost: one pread per call, no buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace plimsoll::internal {

class InputFile {
 public:
  // Throws NotFound or Error, naming the file and the system's reason; for a folder Error.
  explicit InputFile(const std::filesystem::path& path);
  // The caller's bytes, under a name; they must outlive it.
  InputFile(std::string name, std::span<const std::byte> bytes)
      : name_(std::move(name)), memory_(bytes.data()), size_(bytes.size()) {}
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::string& name() const noexcept { return name_; }  // For messages: its path.
  std::uint64_t size() const noexcept { return size_; }       // When it was opened.
  int handle() const noexcept { return handle_; }             // -1 for memory.

  // Fills `bytes` from `offset` on. Throws Corruption when the file has fewer, Error when it cannot be read.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;
  // A part of the file as a string; throws Unsupported when more than `max_bytes` are requested, Corruption as read().
  std::string read_string(std::uint64_t offset, std::uint64_t bytes, std::uint64_t max_bytes) const;

  // Throws Corruption: `"name": what (offset N)`.
  [[noreturn]] void corrupt(std::uint64_t offset, std::string_view what) const;

 private:
  std::string name_;
  const std::byte* memory_ = nullptr;
  std::uint64_t size_ = 0;
  int handle_ = -1;
};

}  // namespace plimsoll::internal
