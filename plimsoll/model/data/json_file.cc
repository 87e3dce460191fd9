#include "plimsoll/model/data/json_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
constexpr int kMaxDepth = 64;

namespace fs = std::filesystem;

// Checked before parsing, so that depth costs nothing.
void check_depth(const std::string& text, const std::string& path) {
  int depth = 0;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inside = false;
    } else if (c == '"') {
      inside = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth)
        throw Corruption(fmt::format("{}: nested more than {} deep at offset {}", path, kMaxDepth, i));
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

// Models in other formats, which people often try first.
void refuse_folder(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return;
  if (fs::exists(fs::path(path) / "model.json", ignored))
    throw InvalidArgument(fmt::format("{}: is a folder; give \"{}\"", path, (fs::path(path) / "model.json").native()));
  if (fs::exists(fs::path(path) / "saved_model.pb", ignored))
    throw Unsupported(
        fmt::format("{}: is a SavedModel of TensorFlow; convert one that Keras made with `tensorflowjs_converter "
                    "--input_format=keras_saved_model --output_format=tfjs_layers_model {} OUT`, or give its weights, "
                    "\"{}\", to load_weights",
                    path, path, (fs::path(path) / "variables" / "variables").native()));
  throw InvalidArgument(fmt::format("{}: is a folder without a model.json; give the name of a file", path));
}

void refuse_binary_models(const std::string& text, const std::string& path) {
  if (text.starts_with("\x89HDF\r\n") || text.starts_with("PK\x03\x04"))
    throw Unsupported(fmt::format("{}: is a model of Keras and not a model.json; load it with load_keras", path));
}

}  // namespace

void with_json_file(const std::string& path, FunctionRef<void(const nlohmann::json&)> f) {
  refuse_folder(path);
  const std::string text = read_file(path, kMaxBytes);
  refuse_binary_models(text, path);
  with_json_text(text, path, f);
}

void with_json_text(const std::string& text, const std::string& path, FunctionRef<void(const nlohmann::json&)> f) {
  check_depth(text, path);
  try {
    f(parse_json(text));
  } catch (const nlohmann::json::parse_error& error) {
    throw Corruption(fmt::format("{}: not valid JSON at offset {}; the file is damaged", path, error.byte));
  } catch (const nlohmann::json::exception& error) {
    throw Corruption(fmt::format("{}: a value is not of the kind expected: {}", path, error.what()));
  }
}

}  // namespace plimsoll::internal
