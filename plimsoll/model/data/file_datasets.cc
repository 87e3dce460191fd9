#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "plimsoll/base/error.h"
#include "plimsoll/io/event_reader.h"
#include "plimsoll/io/npz.h"
#include "plimsoll/model/data/dataset.h"
#include "plimsoll/model/data/example_proto.h"
#include "plimsoll/model/data/gzip_file.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

std::string name_in(const NpzFile& file, const std::string& path, const std::string& wanted,
                    std::initializer_list<const char*> usual) {
  const std::vector<std::string> names = file.names();
  const auto has = [&](const std::string& name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  if (!wanted.empty() && has(wanted)) return wanted;
  if (wanted.empty())
    for (const char* name : usual)
      if (has(name)) return name;
  std::string known;
  for (const std::string& name : names) known += known.empty() ? name : ", " + name;
  throw NotFound(fmt::format("{}: there is no array \"{}\"; there are: {}", path,
                             wanted.empty() ? *usual.begin() : wanted, known));
}

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;

DType idx_dtype(const GzipFile& file, std::byte code) {
  switch (std::to_integer<int>(code)) {
    case 0x08:
      return u8;
    case 0x09:
      return i8;
    case 0x0B:
      return i16;
    case 0x0C:
      return i32;
    case 0x0D:
      return f32;
    case 0x0E:
      return f64;
    default:
      file.corrupt(fmt::format("{:#04x} is not a dtype of idx files", std::to_integer<int>(code)));
  }
}

void swap_bytes(const TensorView& values) {
  const std::size_t size = size_of(values.dtype());
  if (size == 1) return;
  for (std::size_t i = 0; i < values.size(); ++i)
    std::reverse(values.bytes() + i * size, values.bytes() + (i + 1) * size);
}

class TfRecordNode final : public DatasetNode, public std::enable_shared_from_this<TfRecordNode> {
 public:
  TfRecordNode(std::vector<std::string> paths, TfRecordOptions options)
      : paths_(std::move(paths)), options_(std::move(options)) {}
  std::unique_ptr<ExampleStream> open() const override { return std::make_unique<Stream>(shared_from_this()); }
  std::optional<std::size_t> size() const override { return std::nullopt; }

 private:
  class Stream final : public ExampleStream {
   public:
    explicit Stream(std::shared_ptr<const TfRecordNode> node) : node_(std::move(node)) {}
    bool next(Example& out) override {
      while (true) {
        if (!reader_) {
          if (file_ == node_->paths_.size()) return false;
          reader_.emplace(node_->paths_[file_++]);
        }
        const std::uint64_t offset = reader_->offset();
        if (const std::optional<std::string> record = reader_->next()) {
          out = parse(*record, offset);
          return true;
        }
        if (reader_->is_truncated()) reader_->corrupt(reader_->offset(), "the last record is not whole");
        reader_.reset();
      }
    }

   private:
    Example parse(const std::string& record, std::uint64_t offset) const {
      const Untracked outside;
      try {
        const auto features = parse_example(record);
        Example example;
        for (const ExampleFeature& feature : node_->options_.inputs) example.inputs.push_back(read(features, feature));
        for (const ExampleFeature& feature : node_->options_.targets)
          example.targets.push_back(read(features, feature));
        return example;
      } catch (const Corruption& error) {
        throw Corruption(fmt::format("{}: record at offset {}: {}", reader_->name(), offset, error.what()));
      }
    }
    static Tensor read(const std::map<std::string, ExampleValues, std::less<>>& features,
                       const ExampleFeature& wanted) {
      const auto found = features.find(wanted.name);
      if (found == features.end()) {
        std::string known;
        for (const auto& [name, values] : features) known += known.empty() ? name : ", " + name;
        throw Corruption(fmt::format("there is no feature \"{}\"; there are: {}", wanted.name, known));
      }
      Tensor result = make_tensor({.op = "tfrecord", .category = Category::kInputs}, wanted.shape, wanted.dtype,
                                  current_host_device());
      if (!found->second.copy_to(writable(result)))
        throw Corruption(fmt::format("feature \"{}\" has {} values of another kind or number than {} {}", wanted.name,
                                     found->second.size(), dtype_name(wanted.dtype), wanted.shape.to_string()));
      return result;
    }

    const std::shared_ptr<const TfRecordNode> node_;
    std::size_t file_ = 0;
    std::optional<RecordReader> reader_;
  };

  const std::vector<std::string> paths_;
  const TfRecordOptions options_;
};

}  // namespace

Tensor load_idx(const std::string& path) {
  GzipFile file(path);
  std::byte head[4];
  file.read_exactly(head);
  const int rank = std::to_integer<int>(head[3]);
  if (head[0] != std::byte{0} || head[1] != std::byte{0} || rank == 0 || rank > 8)
    file.corrupt("does not begin as an idx file");
  const DType dtype = idx_dtype(file, head[2]);
  std::vector<std::int64_t> sizes;
  std::uint64_t bytes = size_of(dtype);
  for (int axis = 0; axis < rank; ++axis) {
    std::byte size[4];
    file.read_exactly(size);
    std::uint32_t value = 0;
    for (const std::byte each : size) value = value << 8 | std::to_integer<std::uint32_t>(each);
    sizes.push_back(value);
    if (value != 0 && bytes > kMostBytes / value) file.corrupt("an array of more than 1 TiB");
    bytes *= value;
  }
  // zlib expands a byte to at most 1032.
  if (bytes / 1100 > std::filesystem::file_size(path))
    file.corrupt(fmt::format("an array of {} bytes is not in it", bytes));
  Tensor result = make_tensor({.op = "idx", .category = Category::kInputs}, Shape(sizes), dtype, current_host_device());
  const TensorView to = writable(result);
  file.read_exactly({to.bytes(), to.nbytes()});
  swap_bytes(to);
  char more = 0;
  if (file.read({&more, 1}) != 0) file.corrupt("there is more after the array");
  return result;
}

Dataset Dataset::from_npz(const std::string& path, const std::string& x, const std::string& y) {
  const Untracked outside;
  const NpzFile file(path);
  const Tensor inputs = file.read(name_in(file, path, x, {"x", "x_train"}));
  return from_tensors(inputs, file.read(name_in(file, path, y, {"y", "y_train"})));
}

Dataset Dataset::from_npy(const std::string& x_path, const std::string& y_path) {
  const Untracked outside;
  return from_tensors(load_npy(x_path), y_path.empty() ? Tensor() : load_npy(y_path));
}

Dataset Dataset::from_idx(const std::string& x_path, const std::string& y_path) {
  const Untracked outside;
  return from_tensors(load_idx(x_path), y_path.empty() ? Tensor() : load_idx(y_path));
}

Dataset Dataset::from_tfrecords(const std::vector<std::string>& paths, const TfRecordOptions& options) {
  if (paths.empty() || options.inputs.empty())
    throw InvalidArgument(fmt::format("from_tfrecords: {} files and {} inputs; give at least one of each", paths.size(),
                                      options.inputs.size()));
  for (const auto* features : {&options.inputs, &options.targets})
    for (const ExampleFeature& feature : *features)
      if (feature.shape.is_set() && !feature.shape.is_known())
        throw InvalidArgument(fmt::format("from_tfrecords: feature \"{}\" has unknown sizes {}; give them",
                                          feature.name, feature.shape.to_string()));
  return Dataset(std::make_shared<TfRecordNode>(paths, options));
}

}  // namespace plimsoll
