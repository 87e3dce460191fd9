#include "plimsoll/io/checkpoint_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

// Reads text like `name: "value"` and `name: 1.5`, one after the other, with # comments.
class TextReader {
 public:
  TextReader(std::string_view text, std::string_view file_name) : text_(text), file_name_(file_name) {}

  bool next() {  // Moves to the next field.
    skip_space();
    if (at_ == text_.size()) return false;
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    name_ = text_.substr(begin, at_ - begin);
    skip_space();
    if (name_.empty() || at_ == text_.size() || text_[at_] != ':') refuse("a field's name and a colon");
    ++at_;
    skip_space();
    return true;
  }
  std::string_view name() const noexcept { return name_; }

  std::string string() {
    if (at_ == text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) refuse("a text in quotes");
    const char quote = text_[at_++];
    std::string value;
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\n') refuse("the end of the quotes");
      value.push_back(text_[at_] == '\\' ? escaped() : text_[at_]);
    }
    if (at_ == text_.size()) refuse("the end of the quotes");
    ++at_;
    return value;
  }

  double number() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    const std::string word(text_.substr(begin, at_ - begin));
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (word.empty() || *end != 0) refuse("a number");
    return value;
  }

  void skip_value() { at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'') ? void(string()) : skip_word(); }

 private:
  void skip_space() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '#')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (!std::isspace(static_cast<unsigned char>(text_[at_])))
        return;
      if (at_ == text_.size()) return;
    }
  }
  void skip_word() {
    while (at_ < text_.size() && !std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  // The character after a backslash; leaves at_ at the last one it took.
  char escaped() {
    if (++at_ == text_.size()) refuse("a character after the backslash");
    const std::string_view octal = "01234567";
    if (octal.find(text_[at_]) != std::string_view::npos) {
      int value = 0;
      std::size_t end = at_;
      while (end < text_.size() && end < at_ + 3 && octal.find(text_[end]) != std::string_view::npos)
        value = value * 8 + (text_[end++] - '0');
      at_ = end - 1;
      return static_cast<char>(value);
    }
    const std::string_view letters = "nrt", meanings = "\n\r\t";
    const std::size_t letter = letters.find(text_[at_]);
    return letter == std::string_view::npos ? text_[at_] : meanings[letter];
  }

  [[noreturn]] void refuse(const char* expected) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    throw Corruption(fmt::format("file \"{}\": line {}: expected {} (offset {})", file_name_, line, expected, at_));
  }

  std::string_view text_, file_name_, name_;
  std::size_t at_ = 0;
};

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\{:03o}", static_cast<int>(c));
    else
      out += c;
  }
  return out + '"';
}

}  // namespace

CheckpointState parse_checkpoint_state(std::string_view text, std::string_view file_name) {
  CheckpointState state;
  for (TextReader in(text, file_name); in.next();) {
    if (in.name() == "model_checkpoint_path")
      state.latest = in.string();
    else if (in.name() == "all_model_checkpoint_paths")
      state.all.push_back(in.string());
    else if (in.name() == "all_model_checkpoint_timestamps")
      state.timestamps.push_back(in.number());
    else if (in.name() == "last_preserved_timestamp")
      state.last_preserved_timestamp = in.number();
    else
      in.skip_value();
  }
  return state;
}

std::string format_checkpoint_state(const CheckpointState& state) {
  std::string text = fmt::format("model_checkpoint_path: {}\n", in_quotes(state.latest));
  for (const std::string& path : state.all) text += fmt::format("all_model_checkpoint_paths: {}\n", in_quotes(path));
  for (const double time : state.timestamps) text += fmt::format("all_model_checkpoint_timestamps: {}\n", time);
  if (state.last_preserved_timestamp != 0)
    text += fmt::format("last_preserved_timestamp: {}\n", state.last_preserved_timestamp);
  return text;
}

CheckpointState read_checkpoint_state(const fs::path& directory) {
  const fs::path path = directory / "checkpoint";
  return parse_checkpoint_state(read_file(path, 16_MiB), path.native());
}

void write_checkpoint_state(const fs::path& directory, const CheckpointState& state) {
  remove_stale_temporaries(directory, "checkpoint.");
  AtomicFile file(directory / "checkpoint");
  file.write(format_checkpoint_state(state));
  file.commit();
}

std::string latest_checkpoint(const fs::path& directory) {
  CheckpointState state;
  try {
    state = read_checkpoint_state(directory);
  } catch (const NotFound&) {
    return "";
  } catch (const Error& error) {
    log_message(LogLevel::warning, error.what());
    return "";
  }
  if (state.latest.empty())
    throw InvalidArgument(fmt::format(
        "latest_checkpoint: the file \"checkpoint\" in \"{}\" does not name a path; remove it", directory.native()));
  const fs::path prefix = directory / state.latest;  // An absolute one replaces the folder.
  std::error_code ignored;
  if (fs::exists(fs::path(prefix) += ".index", ignored) || fs::is_regular_file(prefix, ignored)) return prefix.native();
  log_message(LogLevel::warning,
              fmt::format("latest_checkpoint: the files of checkpoint \"{}\" are missing", prefix.native()));
  return "";
}

}  // namespace plimsoll
