// Hdf5Text: the text of attributes; short texts are next to their names, long ones in the global heap.
//
// The output of all calls together is bounded: 64 MiB (Unsupported), however often a file refers to the same bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plimsoll/io/internal/hdf5_messages.h"

namespace plimsoll::internal {

class Hdf5Text {
 public:
  explicit Hdf5Text(const Hdf5Bytes& bytes) : bytes_(bytes) {}

  // Adds the attribute of this message when it has text; numbers are skipped.
  void read_attribute(Hdf5Cursor& in, std::map<std::string, std::vector<std::string>>& out);
  // Counts bytes of names and text that are kept. Throws Unsupported when there are too many.
  void charge(std::size_t bytes, std::uint64_t address);

 private:
  struct Place {
    std::uint64_t address = 0, size = 0;
  };
  std::string heap_text(std::uint64_t collection, std::uint32_t index, std::uint32_t length);

  const Hdf5Bytes& bytes_;
  std::size_t charged_ = 0;
  std::map<std::uint64_t, std::map<std::uint32_t, Place>> collections_;  // By address, then by number.
};

}  // namespace plimsoll::internal
