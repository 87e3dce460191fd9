// TraceMaker: traces made by hand, for tests. Every event is a microsecond after the one before.
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/base/rounding.h"
#include "plimsoll/memory/trace/trace_file.h"

namespace plimsoll {

struct MadeLabel {
  std::string op = "add", scope = "", budget = "";
  Category category = Category::kActivations;
  std::uint32_t rows = 0;
};

class TraceMaker {
 public:
  TraceMaker() {
    file.names = {""};
    file.arenas = {{"CPU:0", 1 << 30, 4096}};
    file.complete = true;
  }

  std::uint64_t allocate(std::uint64_t size, const MadeLabel& label = {}, std::uint64_t offset = 0) {
    TraceEvent& event = add(TraceEventKind::kAllocate);
    event.block = ++blocks_;
    event.size = round_up(size, 64);
    event.requested = size;
    event.offset = offset;
    event.op = name(label.op);
    event.scope = name(label.scope);
    event.budget = name(label.budget);
    event.category = label.category;
    if (label.rows > 0) {
      event.has_shape = true;
      event.rank = 2;
      event.dtype = 8;
      event.sizes[0] = label.rows;
      event.sizes[1] = 4;
    }
    return event.block;
  }
  void free(std::uint64_t block) { add(TraceEventKind::kFree).block = block; }
  void step(std::uint64_t number) { add(TraceEventKind::kStep).number = number; }
  void phase(const std::string& text) { add(TraceEventKind::kPhase).text = text; }
  void text(const std::string& text) { add(TraceEventKind::kText).text = text; }
  void commit(std::uint64_t bytes) { add(TraceEventKind::kCommitted).size = bytes; }
  void refuse(std::uint64_t bytes, const std::string& op) {
    const std::uint32_t number = name(op);
    TraceEvent& event = add(TraceEventKind::kRefused);
    event.requested = bytes;
    event.op = number;
  }
  // As from version 4 on.
  void refuse_by(const std::string& budget, std::uint64_t bytes, std::uint64_t limit, const std::string& text) {
    const std::uint32_t number = name(budget), device = name("CPU:0"), op = name("matmul");
    TraceEvent& event = add(TraceEventKind::kRefused);
    event.requested = event.number = bytes;
    event.size = limit;
    event.budget = number;
    event.name = device;
    event.op = op;
    event.text = text;
  }
  TraceEvent& add(TraceEventKind kind) {
    file.events.emplace_back();
    file.events.back().kind = kind;
    file.events.back().time_ns = time_ += 1000;
    return file.events.back();
  }
  std::uint32_t name(const std::string& text) {
    for (std::uint32_t i = 0; i < file.names.size(); ++i)
      if (file.names[i] == text) return i;
    file.names.push_back(text);
    return static_cast<std::uint32_t>(file.names.size() - 1);
  }

  TraceFile file;

 private:
  std::uint64_t blocks_ = 0;
  std::int64_t time_ = 0;
};

}  // namespace plimsoll
