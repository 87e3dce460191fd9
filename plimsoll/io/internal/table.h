// Sorted tables (SSTables), the format of TensorFlow's checkpoint index files: keys and values, in blocks with
// checksums.
//
//   TableWriter table;
//   table.add("", header);  table.add("dense/bias", entry);       // keys in increasing order
//   file.write(table.finish());
//   std::vector<TableEntry> entries = read_table(file, {});
//
// The writer writes what TensorFlow writes, byte for byte (blocks of 256 KiB, not compressed). The reader reads
// compressed blocks too, checks every checksum, and holds the table in memory: it is for indexes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/io/internal/input_file.h"

namespace plimsoll::internal {

struct TableEntry {
  std::string key;
  std::string value;
  std::uint64_t offset = 0;  // The entry's place in the file; its block's when that is compressed.
};

struct TableLimits {
  std::uint64_t max_bytes = std::uint64_t{1} << 30;  // Keys and values together. A larger table is Unsupported.
  bool verify_checksums = true;
};

// Throws Corruption with the offset.
std::vector<TableEntry> read_table(const InputFile& file, const TableLimits& limits = {});

class TableWriter {
 public:
  explicit TableWriter(std::size_t block_bytes = 256 * 1024) : block_bytes_(block_bytes) {}
  void add(std::string_view key, std::string_view value);  // Requires a key greater than the last.
  std::string finish();                                    // The whole file.

 private:
  // A block under construction.
  struct Block {
    explicit Block(int restart_interval) : interval(restart_interval) {}
    void add(std::string_view key, std::string_view value);
    std::string finish();  // And starts over.
    std::size_t size_estimate() const noexcept { return bytes.size() + 4 * restarts.size() + 4; }

    const int interval;
    std::string bytes, last_key;
    std::vector<std::uint32_t> restarts{0};
    int since_restart = 0;
  };

  std::string write_block(std::string contents);  // Returns its handle.
  void end_block();

  const std::size_t block_bytes_;
  std::string file_, last_key_;
  Block block_{16}, index_{1};
  std::string pending_handle_;  // The last block's, whose index key waits for the next key.
};

}  // namespace plimsoll::internal
