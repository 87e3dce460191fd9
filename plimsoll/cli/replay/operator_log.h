// OperatorLog: a training run operator by operator, read from a CSV file, as a program to try budgets on.
//
//   # phase forward                                  init, data, zero_grad, forward, backward, optimizer
//   # step 1                                         training steps begin
//   a,7,4096                                         allocate 4096 bytes and call them 7; f,7 frees them
//   # op aten.relu_ in=7 out=7 us=12.5               an operator, after the lines that it or its caller caused
//
//   OperatorLog log = read_operator_log("resnet18_train.csv.gz");     // plain or gzip
//   floors_of(log.program).recompute.bytes;
//
// Ids are storages, blanks between them. An operator whose name ends in `_` writes its outputs that are inputs too in
// place; another one whose outputs are all inputs is a view, which touches no bytes. Outputs that no line allocates
// have no bytes. Each version of a storage is a value. Operators of forward and backward may repeat. Pinned are values
// made or changed elsewhere, or read elsewhere. Anything else is Corruption with file, line and reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plimsoll/cli/replay/text_lines.h"
#include "plimsoll/plan/recompute.h"

namespace plimsoll::internal {

struct OperatorLog {
  std::string name;                    // The file's name, without folders.
  StepProgram program;                 // The whole run. Costs are nanoseconds; every value may spill.
  std::vector<int> round;              // Per step of the program: the training step it belongs to.
  std::vector<std::string> operators;  // Per step of the program: its operator, or "" when there is none.
  std::size_t peak_bytes = 0;          // Most bytes live at once.
};

// Throws NotFound when it cannot be opened, Corruption when it is not an operator log.
OperatorLog read_operator_log(const std::string& path);

// The parser: takes text in pieces of any size. It must not be used after an exception.
class OperatorLogParser {
 public:
  static constexpr std::size_t kMaxLineBytes = 1 << 16;

  explicit OperatorLogParser(std::string name);
  void feed(std::string_view text);
  OperatorLog finish();
  std::size_t lines() const noexcept { return lines_.count(); }  // Complete lines read so far.

 private:
  enum class Phase : std::uint8_t { kForward, kBackward, kData, kOther };
  struct Storage {
    std::size_t bytes = 0;
    int value = StepProgram::kNone;  // Its current version.
    bool is_new = false;             // Allocated since the last operator.
  };
  struct Operator {
    std::string_view name;
    std::vector<std::uint64_t> in, out;
    std::uint64_t nanoseconds = 0;
  };

  void line(std::string_view text);
  void allocate(std::uint64_t id, std::uint64_t bytes);
  void free(std::uint64_t id);
  void comment(std::string_view text);
  Operator parse_operator(std::string_view text) const;
  void run(const Operator& op);
  void add_allocated_elsewhere(const Operator& op, bool is_view);
  int add_value(std::size_t bytes, bool is_pinned);
  void add_step(StepProgram::Step step, std::string name);
  void write(const Operator& op, StepProgram::Step& step);
  void pin();
  std::vector<std::uint64_t> ids(std::string_view text) const;
  const Storage& storage(std::uint64_t id) const;
  [[noreturn]] void fail(const std::string& reason) const;

  TextLines lines_;
  OperatorLog log_;
  std::size_t live_bytes_ = 0, window_bytes_ = 0, window_peak_ = 0;
  std::uint64_t nanoseconds_ = 0;
  std::uint64_t total_bytes_ = 0;  // The sum over all values, which programs add up.
  Phase phase_ = Phase::kOther;
  int round_ = 0;
  std::unordered_map<std::uint64_t, Storage> storages_;
  std::vector<std::uint64_t> window_;                 // Ids allocated since the last operator, in order.
  std::unordered_map<std::uint64_t, Storage> freed_;  // Since the last operator, which may still name them.
  std::vector<Phase> phases_;                         // Per step.
  std::vector<int> before_;                           // Per value: the one whose storage it reuses.
  std::vector<int> freed_before_;                     // Per value: the step before which its storage was freed.
};

}  // namespace plimsoll::internal
