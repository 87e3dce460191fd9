#include "plimsoll/distributed/engine_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <unordered_map>

#include "plimsoll/base/error.h"
#include "plimsoll/distributed/engine.h"
#include "plimsoll/distributed/unavailable.h"

namespace plimsoll::distributed {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> places_of(const std::string& file) {
  std::vector<std::string> places;
  Dl_info here = {};
  if (::dladdr(reinterpret_cast<const void*>(&load_engine), &here) != 0 && here.dli_fname) {
    std::error_code error;
    const fs::path found = fs::canonical(here.dli_fname, error);
    const fs::path folder = error ? fs::path(here.dli_fname).parent_path() : found.parent_path();
    places.push_back((folder / file).string());
    places.push_back((folder / ".." / PLIMSOLL_LIBRARY_FOLDER / file).string());
  }
  places.push_back(file);
  return places;
}

const PlimsollEngine& open_engine(const std::string& name) {
  const std::string file = fmt::format("libplimsoll_{}.so", name);
  std::string why;
  for (const std::string& place : places_of(file)) {
    std::error_code ignored;
    const bool is_path = place.find('/') != std::string::npos;
    if (is_path && !fs::exists(place, ignored)) continue;
    void* const library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      why = ::dlerror();
      continue;
    }
    const auto get = reinterpret_cast<PlimsollEngineFunction>(::dlsym(library, "plimsoll_engine"));
    const PlimsollEngine* const engine = get ? get(PLIMSOLL_ENGINE_VERSION) : nullptr;
    if (!engine)
      throw Unsupported(fmt::format("job: {} is not an engine of version {}; build it with this library", place,
                                    PLIMSOLL_ENGINE_VERSION));
    return *engine;
  }
  throw NotFound(fmt::format(
      "job: engine \"{}\" cannot be loaded: {}; install Open MPI (tools/setup mpi) and build again, or use engine "
      "\"none\"",
      name, why.empty() ? fmt::format("there is no {}", file) : why));
}

class EngineCommunicator final : public Communicator {
 public:
  explicit EngineCommunicator(const PlimsollEngine& engine) : engine_(engine) {
    PlimsollEngineError error = {};
    if (engine_.start(&rank_, &size_, &error) != 0)
      throw Unavailable(fmt::format("job: engine \"{}\" cannot start: {}", engine_.name, error.text));
  }

  const char* engine() const noexcept override { return engine_.name; }
  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  std::string host() const override {
    char name[256] = {};
    return engine_.host(name, sizeof(name)) == 0 ? name : "unknown";
  }
  Transfer send(int to, int tag, std::span<const std::byte> bytes) override {
    return begin(to, [&](void** transfer, PlimsollEngineError* error) {
      return engine_.send(to, tag, bytes.data(), bytes.size(), transfer, error);
    });
  }
  Transfer receive(int from, int tag, std::span<std::byte> bytes) override {
    return begin(from, [&](void** transfer, PlimsollEngineError* error) {
      return engine_.receive(from, tag, bytes.data(), bytes.size(), transfer, error);
    });
  }
  bool test(Transfer transfer) override {
    const auto found = under_way_.find(transfer);
    PLIMSOLL_CHECK(found != under_way_.end());
    require_open(found->second.peer);
    int is_done = 0;
    PlimsollEngineError error = {};
    if (engine_.test(found->second.handle, &is_done, &error) != 0) refuse(found->second.peer, error);
    if (is_done) under_way_.erase(found);
    return is_done != 0;
  }
  void close() noexcept override {  // The engine moves bytes only inside of its calls, and gets no more of them.
    closed_ = true;
    under_way_.clear();
  }
  void abort(int exit_code) noexcept override {
    close();
    engine_.abort(exit_code);
  }
  void finish() noexcept override {
    if (!closed_) engine_.finish();
    closed_ = true;
  }

 private:
  struct UnderWay {
    void* handle;
    int peer;
  };
  template <class F>
  Transfer begin(int peer, F&& f) {
    require_open(peer);
    void* handle = nullptr;
    PlimsollEngineError error = {};
    if (f(&handle, &error) != 0) refuse(peer, error);
    under_way_.emplace(++last_, UnderWay{handle, peer});
    return last_;
  }
  void require_open(int peer) const {
    if (closed_) throw Unavailable("job: it has ended; start it again", peer);
  }
  [[noreturn]] static void refuse(int peer, const PlimsollEngineError& error) {
    throw Unavailable(fmt::format("job: rank {}: {}", peer, error.text), peer);
  }

  const PlimsollEngine& engine_;
  int rank_ = 0, size_ = 1;
  bool closed_ = false;
  Transfer last_ = 0;
  std::unordered_map<Transfer, UnderWay> under_way_;
};

}  // namespace

std::shared_ptr<Communicator> load_engine(const std::string& name) {
  return std::make_shared<EngineCommunicator>(open_engine(name));
}

}  // namespace plimsoll::distributed
