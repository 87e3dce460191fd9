// Saves without end, to be killed; or looks whether what a killed one left is whole. For tools/check_kills.
//
// usage: save_loop KIND FOLDER loop      says "ready" and saves until it is killed
//        save_loop KIND FOLDER check     loads what is there: all of one save, or nothing saved yet
//        save_loop KIND FOLDER finish    saves once more; then only the files of whole saves are there
//        save_loop kinds                 lists the kinds
// Every number of a save is the save's own, so that a mixture of two shows.
#include <plimsoll/plimsoll.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

namespace pl = plimsoll;
namespace fs = std::filesystem;

namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

pl::Tensor full(std::int64_t size, int number) { return pl::full({size}, static_cast<float>(number)); }

// Requires one number everywhere; gives it.
float only_number(const std::vector<pl::Tensor>& tensors) {
  const float first = tensors.at(0).to_vector<float>().at(0);
  for (const pl::Tensor& tensor : tensors)
    for (const float value : tensor.to_vector<float>()) require(value == first, "two saves are mixed");
  return first;
}

std::vector<pl::NamedTensor> tensors_of(int number) {
  std::vector<pl::NamedTensor> result;
  for (int i = 0; i < 8; ++i) result.push_back({"v" + std::to_string(i), full(20000, number)});
  return result;
}

void check_bundle(const std::string& prefix) {
  const pl::BundleReader reader(prefix);
  std::vector<pl::Tensor> all;
  for (int i = 0; i < 8; ++i) all.push_back(reader.read("v" + std::to_string(i)));
  only_number(all);
}

// The number after the last dash of the latest checkpoint's name; 0 when there is none.
int latest_step(const fs::path& folder) {
  const std::string latest = pl::latest_checkpoint(folder);
  return latest.empty() ? 0 : std::stoi(latest.substr(latest.rfind('-') + 1));
}

pl::Sequential model_of(std::int64_t units) {
  pl::Sequential model({pl::layers::Dense(units, {.activation = "relu", .input_shape = {64}}), pl::layers::Dense(3)});
  model.compile({.optimizer = pl::optimizers::Adam(), .loss = pl::losses::MeanSquaredError()});
  return model;
}

void set_weights(const pl::Model& model, int number) {
  for (const pl::Variable& weight : model.weights())
    weight.assign(pl::full(weight.shape(), static_cast<float>(number)));
}

float weights_number(const pl::Model& model) {
  std::vector<pl::Tensor> values;
  for (const pl::Variable& weight : model.weights()) values.push_back(weight.value());
  return only_number(values);
}

struct Kind {
  std::function<void(const fs::path& folder, int number)> save;
  std::function<bool(const fs::path& folder)> check;  // False: nothing was saved yet.
  std::size_t most_files = 1;                         // When a save has finished.
};

Kind one_file(const std::string& name, std::function<void(const fs::path&, const pl::TensorTree&)> save,
              std::function<pl::TensorTree(const fs::path&)> load) {
  return {[=](const fs::path& folder, int number) {
            save(folder / name, {{"a", full(100000, number)}, {"b", full(50000, number)}});
          },
          [=](const fs::path& folder) {
            if (!fs::exists(folder / name)) return false;
            const pl::TensorTree tree = load(folder / name);
            only_number({tree["a"].tensor(), tree["b"].tensor()});
            return true;
          },
          1};
}

bool check_model(const fs::path& json) {
  if (!fs::exists(json)) return false;
  weights_number(pl::load_layers_model(json.string()));
  return true;
}

// The newest two of a session's.
Kind saver() {
  auto graph = std::make_shared<pl::Graph>();
  {
    const pl::GraphScope building(*graph);
    for (int i = 0; i < 8; ++i) pl::Variable(pl::full({20000}, 1.f), {.name = "v" + std::to_string(i)});
  }
  auto session = std::make_shared<pl::Session>(*graph);
  auto keeper = std::make_shared<pl::Saver>(pl::SaverOptions{.max_to_keep = 2});
  return {[=](const fs::path& folder, int) {
            if (keeper->checkpoints().empty()) {
              session->initialize_variables();
              keeper->recover(folder.string());
            }
            keeper->save(*session, (folder / "s.ckpt").string(), latest_step(folder) + 1);
          },
          [](const fs::path& folder) {
            const std::string latest = pl::latest_checkpoint(folder);
            require(!latest.empty() || !fs::exists(folder / "checkpoint"), "the list names what is not there");
            if (!latest.empty()) check_bundle(latest);
            return !latest.empty();
          },
          1 + 2 * 3};
}

Kind kept() {
  auto keeper = std::make_shared<pl::CheckpointKeeper>(pl::KeeperOptions{.max_to_keep = 2});
  Kind kind = saver();
  kind.save = [=](const fs::path& folder, int) {
    if (keeper->kept().empty()) keeper->recover(folder);
    const int step = latest_step(folder) + 1;
    keeper->save(folder / "m.ckpt", step, tensors_of(step));
  };
  return kind;
}

// A fit whose callbacks save after each of three epochs.
void fit(const fs::path& folder) {
  pl::Sequential model = model_of(100);
  const pl::Tensor x = pl::random_uniform({64, 64}, -1, 1, {.seed = 1}), y = pl::ones({64, 3});
  model.fit(
      x, y,
      {.epochs = 3,
       .verbose = 0,
       .callbacks = {pl::callbacks::ModelCheckpoint((folder / "whole").string()),
                     pl::callbacks::ModelCheckpoint((folder / "weights.ckpt").string(), {.save_weights_only = true})}});
}

bool check_fit(const fs::path& folder) {
  if (fs::exists(folder / "weights.ckpt.index")) {
    const pl::Sequential model = model_of(100);
    model.load_weights((folder / "weights.ckpt").string());
  }
  if (!fs::exists(folder / "whole" / "model.json")) return false;
  require(pl::load_layers_model((folder / "whole" / "model.json").string()).optimizer().step() > 0,
          "no step was taken");
  return true;
}

bool check_events(const fs::path& folder) {
  bool any = false;
  for (const auto& entry : fs::directory_iterator(folder)) {
    pl::EventReader reader(entry.path());
    for (std::int64_t next = 0; auto event = reader.next();) {
      for (const pl::EventValue& value : event->values) require(value.tag == "loss" && event->step == next++, "a gap");
      any = any || !event->values.empty();
    }
  }
  return any;
}

std::map<std::string, Kind> kinds() {
  std::map<std::string, Kind> result;
  result["safetensors"] = one_file(
      "x.safetensors", [](const fs::path& path, const pl::TensorTree& tree) { pl::save_safetensors(path, tree); },
      pl::load_safetensors);
  result["npz"] = one_file("x.npz", pl::save_npz, pl::load_npz);
  result["npy"] = {[](const fs::path& folder, int number) { pl::save_npy(folder / "x.npy", full(150000, number)); },
                   [](const fs::path& folder) {
                     if (!fs::exists(folder / "x.npy")) return false;
                     only_number({pl::load_npy(folder / "x.npy")});
                     return true;
                   },
                   1};
  result["checkpoint"] = {
      [](const fs::path& folder, int number) { pl::save_checkpoint(folder / "m.ckpt", tensors_of(number)); },
      [](const fs::path& folder) {
        if (!fs::exists(folder / "m.ckpt.index")) return false;
        check_bundle((folder / "m.ckpt").string());
        return true;
      },
      3};
  result["keeper"] = kept();
  result["saver"] = saver();
  result["weights"] = {[](const fs::path& folder, int number) {
                         static const pl::Sequential model = model_of(100);
                         set_weights(model, number);
                         model.save_weights((folder / "w.ckpt").string());
                       },
                       [](const fs::path& folder) {
                         if (pl::latest_checkpoint(folder).empty()) return false;
                         const pl::Sequential model = model_of(100);
                         model.load_weights(pl::latest_checkpoint(folder));
                         weights_number(model);
                         return true;
                       },
                       4};
  result["model"] = {[](const fs::path& folder, int number) {
                       static const pl::Sequential small = model_of(100), large = model_of(200);
                       const pl::Model& model = number % 2 == 0 ? large : small;
                       set_weights(model, number);
                       pl::save_layers_model(model, folder.string(), {.include_optimizer = true});
                     },
                     [](const fs::path& folder) { return check_model(folder / "model.json"); }, 2};
  result["fit"] = {[](const fs::path& folder, int) { fit(folder); }, check_fit, 2 + 1 + 3};
  result["events"] = {[](const fs::path& folder, int) {
                        pl::EventWriter writer(folder);
                        for (int step = 0; step < 2000; ++step) writer.add_scalar("loss", 1.f, step);
                      },
                      check_events, SIZE_MAX};
  return result;
}

void require_clean(const fs::path& folder, std::size_t most) {
  std::size_t files = 0;
  std::string names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    require(entry.path().native().find(".tmp-") == std::string::npos, "a temporary is left: " + entry.path().string());
    names += " " + entry.path().filename().string();
    ++files;
  }
  require(files <= most, "files that no save needs are left:" + names);
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, Kind> all = kinds();
  if (argc == 2 && std::string(argv[1]) == "kinds") {
    for (const auto& [name, kind] : all) std::puts(name.c_str());
    return 0;
  }
  if (argc != 4 || !all.contains(argv[1])) {
    std::fputs("usage: save_loop KIND FOLDER loop|check|finish, or save_loop kinds\n", stderr);
    return 2;
  }
  const Kind& kind = all.at(argv[1]);
  const fs::path folder = argv[2];
  const std::string what = argv[3];
  try {
    fs::create_directories(folder);
    if (what == "check") {
      std::puts(kind.check(folder) ? "whole" : "nothing yet");
      return 0;
    }
    if (what == "loop") {
      std::puts("ready");
      std::fflush(stdout);
    }
    int number = 1;
    do kind.save(folder, number++);
    while (what == "loop");
    require_clean(folder, kind.most_files);
    require(kind.check(folder), "nothing was saved");
  } catch (const std::exception& error) {
    std::printf("BAD: %s\n", error.what());
    return 1;
  }
}
