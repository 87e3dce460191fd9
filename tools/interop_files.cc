// Our side of tools/interop_*: writes files for other programs to read, and reads what they wrote.
//
//   interop_files write FOLDER     interop_files read FOLDER     interop_files convert CHECKPOINT FILE.npz
//
// Tensors are named by dtype and shape, "f32_2x3", and hold a pattern that every program can generate: byte i is
// i * 37 + 11; elements of bool are true at multiples of 3.
#include <plimsoll/plimsoll.h>
#include <plimsoll/tensor/make_tensor.h>

#include <cstring>
#include <filesystem>
#include <iostream>
#include <stdexcept>

namespace fs = std::filesystem;
namespace pl = plimsoll;

namespace {

struct Kind {
  const char* name;
  pl::DType dtype;
};
constexpr Kind kKinds[] = {{"bool", pl::boolean}, {"u8", pl::u8},   {"i8", pl::i8},   {"i16", pl::i16},
                           {"i32", pl::i32},      {"i64", pl::i64}, {"f16", pl::f16}, {"bf16", pl::bf16},
                           {"f32", pl::f32},      {"f64", pl::f64}};
const std::pair<const char*, pl::Shape> kShapes[] = {
    {"scalar", pl::Shape::scalar()}, {"0", {0}}, {"7", {7}}, {"2x3", {2, 3}}, {"300x301", {300, 301}}};
const std::vector<std::string> kStrings = {"", "hello", std::string(300, 'x'), std::string("\0\n\xc3\xa4", 4)};

void require(bool fine, const std::string& what) {
  if (!fine) throw std::runtime_error("not as expected: " + what);
}

std::vector<std::byte> pattern(pl::DType dtype, std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    made[i] = static_cast<std::byte>(dtype == pl::boolean ? i % 3 == 0 : i * 37 + 11);
  return made;
}

pl::Tensor patterned(pl::DType dtype, const pl::Shape& shape) {
  const pl::Tensor made =
      pl::make_tensor({.op = "patterned", .category = pl::Category::kInputs}, shape, dtype, pl::current_device());
  const std::vector<std::byte> bytes = pattern(dtype, made.nbytes());
  if (!bytes.empty()) std::memcpy(pl::writable(made).bytes(), bytes.data(), bytes.size());
  return made;
}

void check(const std::string& name, const pl::Tensor& tensor, pl::DType dtype, const pl::Shape& shape) {
  require(tensor.dtype() == dtype && tensor.shape() == shape, name + " is " + tensor.shape().to_string());
  const std::vector<std::byte> expected = pattern(dtype, tensor.nbytes());
  require(expected.empty() || std::memcmp(expected.data(), tensor.view().bytes(), expected.size()) == 0,
          "the elements of " + name);
}

template <class F>
void for_each_tensor(F&& f) {
  for (const Kind& kind : kKinds)
    for (const auto& [shape_name, shape] : kShapes) f(std::string(kind.name) + "_" + shape_name, kind.dtype, shape);
}

// A small network trained for one step, as a session holds it.
struct Network {
  pl::Graph graph;
  pl::Tensor x, y, loss, train;
  Network() {
    pl::GraphScope building(graph);
    {
      pl::NameScope input("Input");
      x = pl::placeholder(pl::f32, {-1, 2}, "x");
      y = pl::placeholder(pl::f32, {-1, 1}, "y");
    }
    pl::NameScope layer("dense");
    pl::Variable kernel(pl::constant({{1.f}, {2.f}}), {.name = "kernel"});
    pl::Variable bias(pl::constant({0.5f}), {.name = "bias"});
    loss = pl::square(pl::matmul(x, kernel) + bias - y).mean();
    train = pl::train::MomentumOptimizer(0.01, 0.5).minimize(loss);
  }
  pl::Feeds feeds() const { return {{x, pl::constant({{1.f, 2.f}, {3.f, 4.f}})}, {y, pl::constant({{5.f}, {11.f}})}}; }
};

void write_checkpoints(const fs::path& folder) {
  pl::BundleWriter all(folder / "all", {.num_shards = 3});
  std::size_t shard = 0;
  for_each_tensor([&](const std::string& name, pl::DType dtype, const pl::Shape& shape) {
    all.add(name, patterned(dtype, shape), shard++ % 3);
  });
  all.add_strings("strings", {2, 2}, kStrings, 1);
  all.commit();

  std::vector<pl::NamedTensor> many;  // An index of several blocks.
  for (int i = 0; i < 20000; ++i)
    many.push_back({"layer_" + std::to_string(i) + "/a_rather_long_name/kernel", pl::constant({i, -i})});
  pl::save_checkpoint(folder / "many", many);

  const Network network;
  pl::Session session(network.graph);
  session.initialize_variables();
  pl::Saver saver({.max_to_keep = 2});
  for (int step = 1; step <= 3; ++step) {
    session.run({network.train}, network.feeds());
    saver.save(session, (folder / "named" / "model.ckpt").string(), step);
  }

  const std::vector<pl::ObjectVariable> objects = {
      {{"model", "kernel"}, "dense/kernel"}, {{"model", "b.i/as"}, "dense/bias"}, {{"steps"}, "steps"}};
  const std::string graph = pl::make_object_graph(objects);
  pl::BundleWriter writer(folder / "objects" / "ckpt");
  writer.add(pl::object_key(objects[0].path), patterned(pl::f32, {2, 3}));
  writer.add(pl::object_key(objects[1].path), patterned(pl::f32, {7}));
  writer.add(pl::object_key(objects[2].path), pl::constant(std::int64_t{42}));
  writer.add_strings(pl::kObjectGraphKey, {}, {&graph, 1});
  writer.commit();
}

void write_events(const fs::path& folder) {
  const Network network;
  pl::Session session(network.graph);
  session.initialize_variables();
  pl::summary::FileWriter writer(folder / "logs", network.graph);
  for (int step = 0; step < 10; ++step) {
    writer.add_scalar("loss", session.run(network.loss, network.feeds()).item<float>(), step);
    session.run({network.train}, network.feeds());
  }
  writer.add_scalar("known", 0.25f, 7);
  writer.add_histogram("hundred", pl::arange(0, 100), 3);
  writer.add_histogram("zeros", pl::zeros({5}), 3);
  writer.add_text("notes", "**hello**", 1);
  writer.add_image("picture", patterned(pl::u8, {5, 7, 3}), 2);
  writer.add_image("grey", patterned(pl::u8, {5, 7, 1}), 2);
  writer.add_run_metadata("step 3", pl::summary::run_metadata({network.train}, network.feeds()), 3);
}

pl::TensorTree tree() {
  pl::TensorTree tensors;
  for_each_tensor([&](const std::string& name, pl::DType dtype, const pl::Shape& shape) {
    tensors.insert(name, patterned(dtype, shape));
  });
  return tensors;
}

void write_archives(const fs::path& folder) {
  pl::save_safetensors(folder / "all.safetensors", tree(), {{"made by", "plimsoll"}});
  pl::save_npz(folder / "all.npz", tree());
  for_each_tensor([&](const std::string& name, pl::DType dtype, const pl::Shape& shape) {
    pl::save_npy(folder / (name + ".npy"), patterned(dtype, shape));
  });
}

void write(const fs::path& folder) {
  fs::create_directories(folder);
  write_checkpoints(folder);
  write_events(folder);
  write_archives(folder);
}

// What the others wrote, where it exists.
void read_bundle(const fs::path& prefix) {
  const pl::BundleReader reader(prefix);
  for_each_tensor([&](const std::string& name, pl::DType dtype, const pl::Shape& shape) {
    check(name, reader.read(name), dtype, shape);
  });
  require(reader.read_strings("strings") == kStrings, "strings");
  std::cout << prefix.filename().string() << ": " << reader.entries().size() << " tensors in " << reader.num_shards()
            << " data files\n";
}

void read_named(const fs::path& folder) {
  const Network network;
  pl::Session session(network.graph);
  pl::Saver saver({.variables = {"dense/kernel", "dense/bias"}});
  const std::string latest = pl::latest_checkpoint(folder);
  require(fs::path(latest).filename() == "model.ckpt-7", "the latest is " + latest);
  saver.restore(session, latest);
  for (const pl::Variable& variable : session.variables())
    check(variable.name(), variable.value(), pl::f32, variable.shape());
  std::cout << latest << ": restored by name\n";
}

void read_objects(const fs::path& folder) {
  const std::string latest = pl::latest_checkpoint(folder);
  const pl::BundleReader reader(latest);
  std::size_t variables = 0;
  for (const pl::ObjectName& object : pl::read_object_graph(reader)) {
    require(reader.contains(object.key), object.key);
    ++variables;
  }
  check("kernel", reader.read(pl::object_key({"model", "kernel"})), pl::f32, {2, 1});
  check("bias", reader.read(pl::object_key({"model", "b.i/as"})), pl::f32, {1});
  const Network network;
  pl::Session session(network.graph);
  pl::Saver({.variables = {"dense/kernel", "dense/bias"}}).restore(session, latest);
  for (const pl::Variable& variable : session.variables())
    check(variable.name(), variable.value(), pl::f32, variable.shape());
  std::cout << latest << ": " << variables << " variables, restored by full names\n";
}

void read_many(const fs::path& prefix) {
  const pl::BundleReader reader(prefix);
  require(reader.entries().size() == 20000, "20000 tensors");
  require(reader.read("layer_19999/a_rather_long_name/kernel").at<int>({1}) == -19999, "the last of many");
  std::cout << prefix.filename().string() << ": an index of " << fs::file_size(pl::bundle_index_path(prefix))
            << " bytes\n";
}

void read_partitioned(const fs::path& prefix) {
  const pl::BundleReader reader(prefix);
  for (const char* name : {"rows", "columns"}) check(name, reader.read(name), pl::f32, {300, 301});
  std::cout << prefix.filename().string() << ": slices of rows and of columns\n";
}

void read_events(const fs::path& folder) {
  std::size_t scalars = 0, histograms = 0, texts = 0, images = 0, graphs = 0;
  for (const auto& file : fs::directory_iterator(folder)) {
    pl::EventReader events(file.path());
    while (const auto event = events.next()) {
      graphs += event->graph.empty() ? 0 : 1;
      for (const pl::EventValue& value : event->values) {
        if (value.kind == "scalar") {
          require(value.scalar == 1.f / float(event->step + 1), "scalar " + value.tag);
          ++scalars;
        }
        if (value.kind == "text") require(value.text == "**hello**", "the text");
        texts += value.kind == "text";
        histograms += value.kind == "histograms" || value.kind == "histogram";
        images += value.kind == "images" || value.kind == "image";
      }
    }
    require(!events.is_truncated(), "the whole file");
  }
  require(scalars == 20 && histograms >= 1 && texts == 1 && images >= 1, "the number of events");
  std::cout << folder.filename().string() << ": " << scalars << " scalars, " << histograms << " histograms, " << texts
            << " texts, " << images << " images, " << graphs << " graphs\n";
}

void read_archive(const pl::TensorTree& tree, const std::string& what, bool with_bfloat16) {
  std::size_t tensors = 0;
  for_each_tensor([&](const std::string& name, pl::DType dtype, const pl::Shape& shape) {
    if (dtype == pl::bf16 && !with_bfloat16) return;
    check(what + " " + name, tree[name].tensor(), dtype, shape);
    ++tensors;
  });
  std::cout << what << ": " << tensors << " tensors\n";
}

void read(const fs::path& folder) {
  for (const char* name : {"all", "sharded"})
    if (fs::exists(pl::bundle_index_path(folder / name))) read_bundle(folder / name);
  if (fs::exists(folder / "many.index")) read_many(folder / "many");
  if (fs::exists(folder / "partitioned.index")) read_partitioned(folder / "partitioned");
  if (fs::exists(folder / "named")) read_named(folder / "named");
  if (fs::exists(folder / "objects")) read_objects(folder / "objects");
  if (fs::exists(folder / "logs")) read_events(folder / "logs");
  if (fs::exists(folder / "all.safetensors")) {
    read_archive(pl::load_safetensors(folder / "all.safetensors"), "safetensors", true);
    require(pl::SafetensorsFile(folder / "all.safetensors").metadata().at("made by") == "another", "the metadata");
  }
  for (const char* name : {"stored.npz", "deflated.npz", "fortran.npz", "swapped.npz"})
    if (fs::exists(folder / name)) read_archive(pl::load_npz(folder / name), name, false);
  for (const char* name : {"version1.npy", "version2.npy", "version3.npy"})
    if (fs::exists(folder / name)) check(name, pl::load_npy(folder / name), pl::f32, {2, 3});
}

// All tensors of a checkpoint whose dtype we support and whose data exist.
void convert(const fs::path& prefix, const fs::path& archive) {
  const pl::BundleReader reader(prefix);
  pl::TensorTree tensors;
  for (const pl::BundleEntry& entry : reader.entries())
    if (entry.dtype && fs::exists(pl::bundle_data_path(prefix, entry.shard, reader.num_shards())))
      tensors.insert(entry.key, reader.read(entry.key));
  pl::save_npz(archive, tensors);
}

}  // namespace

int main(int count, char** words) {
  try {
    const std::string verb = count > 1 ? words[1] : "";
    if (verb == "write" && count == 3) return write(words[2]), 0;
    if (verb == "read" && count == 3) return read(words[2]), 0;
    if (verb == "convert" && count == 4) return convert(words[2], words[3]), 0;
    std::cerr << "usage: interop_files write|read FOLDER, or convert CHECKPOINT FILE.npz\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "interop_files: " << error.what() << "\n";
    return 1;
  }
}
