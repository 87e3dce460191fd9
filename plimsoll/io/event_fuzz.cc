// Reads any bytes as an event file: succeeds or is refused.
#include "plimsoll/base/error.h"
#include "plimsoll/io/event_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  plimsoll::EventReader reader(std::as_bytes(std::span(data, size)), {.verify_checksums = false});
  try {
    while (const auto event = reader.next()) plimsoll::summarize_graph(event->graph);
  } catch (const plimsoll::Corruption&) {
  }
  return 0;
}
