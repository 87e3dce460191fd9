#include "plimsoll/observe/live/live_questions.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/log.h"
#include "plimsoll/base/system_error.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/arena_list.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/memory/trace/trace_recording.h"

namespace plimsoll::internal {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostLine = 4096, kMostAnswer = 1 << 20;
constexpr int kLineMs = 1000, kFlushMs = 500;
constexpr double kMostSeconds = 3600;

class Socket {
 public:
  explicit Socket(int file = -1) noexcept : file_(file) {}
  Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~Socket() { reset(); }
  int file() const noexcept { return file_; }
  void reset() noexcept {
    if (file_ >= 0) close(std::exchange(file_, -1));
  }

 private:
  int file_;
};

// A path of any length fits, because it is relative to the open folder.
sockaddr_un address_in(int folder, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder, name);
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

// Reads up to a newline, which is dropped; empty when it does not come in time or is too long.
std::optional<std::string> read_line(int socket, Clock::time_point until, std::size_t most) {
  std::string line;
  char piece[1024];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd wait{socket, POLLIN, 0};
    if (left <= 0 || poll(&wait, 1, static_cast<int>(std::min<long long>(left, 1000'000))) == 0) return std::nullopt;
    const ssize_t count = recv(socket, piece, sizeof(piece), MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return std::nullopt;
    line.append(piece, static_cast<std::size_t>(count));
    if (const std::size_t end = line.find('\n'); end != std::string::npos) {
      line.resize(end);
      return line;
    }
    if (line.size() > most) return std::nullopt;
  }
}

void send_line(int socket, std::string line) {
  line += '\n';
  std::string_view rest = line;
  const auto until = Clock::now() + std::chrono::milliseconds(kLineMs);
  while (!rest.empty() && Clock::now() < until) {
    pollfd wait{socket, POLLOUT, 0};
    if (poll(&wait, 1, kLineMs) <= 0) return;
    const ssize_t count = send(socket, rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return;
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string error_text(const std::string& what) { return json_text(Json{{"error", what}}); }

bool is_same_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

std::string answer_holders(std::size_t most) {
  LiveCounters counters;
  gather_live_counters(counters, true);
  Json holders = Json::array();
  for (std::size_t i = 0; i < std::min<std::size_t>(counters.num_holders, most); ++i) {
    const LiveHolder& holder = counters.holders[i];
    holders.push_back({{"op", text_of(holder.op)},
                       {"scope", text_of(holder.scope)},
                       {"category", category_name(static_cast<Category>(holder.category))},
                       {"bytes", holder.bytes},
                       {"blocks", holder.blocks}});
  }
  return json_text(Json{{"used_bytes", counters.used()}, {"holders", std::move(holders)}});
}

std::string answer_trim() {
  std::size_t freed = 0;
  ArenaList::instance().for_each([&](Arena& arena) { freed += arena.trim(); });
  return json_text(Json{{"freed_bytes", freed}});
}

template <class T>
std::optional<T> number_asked(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

struct LiveQuestions::State {
  State(const LiveFolder& folder, int number)
      : process(number), name(std::to_string(number) + ".socket"), place(fcntl(folder.file(), F_DUPFD_CLOEXEC, 3)) {
    if (place.file() < 0) throw_system_error("live", folder.path().string(), "keep open", errno);
    unlinkat(place.file(), name.c_str(), 0);
    listener = Socket(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const sockaddr_un address = address_in(place.file(), name);
    // Nobody else can enter the folder, so the mode before the change does not matter.
    if (listener.file() < 0 ||
        bind(listener.file(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        fchmodat(place.file(), name.c_str(), 0600, 0) != 0 || listen(listener.file(), 16) != 0)
      throw_system_error("live", (folder.path() / name).string(), "listen on", errno);
    wake = Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (wake.file() < 0) throw_system_error("live", (folder.path() / name).string(), "listen on", errno);
    thread = std::thread([this] { run(); });
    pthread_setname_np(thread.native_handle(), "plimsoll-live");
  }

  void run() noexcept {
    for (;;) {
      pollfd waits[3] = {{listener.file(), POLLIN, 0}, {wake.file(), POLLIN, 0}, {follower.file(), POLLIN, 0}};
      const bool records = recorder != nullptr;
      if (poll(waits, records ? 3 : 2, records ? kFlushMs : -1) < 0 && errno != EINTR) return;
      if (waits[1].revents != 0) break;
      if (records) go_on_recording(waits[2].revents);
      if (waits[0].revents & POLLIN) serve(Socket(accept4(listener.file(), nullptr, nullptr, SOCK_CLOEXEC)));
    }
    end_recording();
  }

  void serve(Socket asker) noexcept try {
    if (asker.file() < 0) return;
    if (!is_same_user(asker.file())) return send_line(asker.file(), error_text("this process belongs to another user"));
    const auto line = read_line(asker.file(), Clock::now() + std::chrono::milliseconds(kLineMs), kMostLine);
    if (!line) return send_line(asker.file(), error_text("the question is too long or too slow"));
    std::string said;
    try {
      said = answer(*line, asker);
    } catch (const std::exception& error) {
      said = error_text(error.what());
    }
    const int file = asker.file() >= 0 ? asker.file() : follower.file();
    if (!said.empty() && file >= 0) send_line(file, said);
  } catch (const std::exception& error) {
    log_message(LogLevel::warning, fmt::format("live: a question was not answered: {}", error.what()));
  }

  // Takes over the connection of a client that follows or waits for its recording.
  std::string answer(const std::string& line, Socket& asker) {
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string word = line.substr(0, space), rest = line.substr(std::min(space + 1, line.size()));
    if (word == "trim" && rest.empty()) return answer_trim();
    if (word == "flush" && rest.empty()) {
      const std::string path = flush_recorded_stream().string();
      return json_text(Json{{"recording", path.empty() ? Json(nullptr) : Json(path)}});
    }
    if (word == "holders") {
      const auto most = rest.empty() ? std::optional<std::size_t>(10) : number_asked<std::size_t>(rest);
      if (most) return answer_holders(*most);
    }
    if (word == "follow" && !rest.empty()) {
      begin_recording(rest);
      follower = std::move(asker);
      return json_text(Json{{"recording", rest}});
    }
    const std::size_t last = rest.rfind(' ');
    if (word == "record" && last != std::string::npos) {
      const auto seconds = number_asked<double>(std::string_view(rest).substr(last + 1));
      if (seconds && *seconds >= 0 && *seconds <= kMostSeconds) {
        begin_recording(rest.substr(0, last));
        ends = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*seconds));
        follower = std::move(asker);
        if (*seconds == 0) go_on_recording(0);
        return "";
      }
    }
    return error_text(
        fmt::format("unknown question \"{}\"; ask holders N, trim, record PATH SECONDS or follow PATH", line));
  }

  void begin_recording(const std::string& path) {
    if (path[0] != '/') throw InvalidArgument(fmt::format("live: \"{}\" is not an absolute path", path));
    if (recorder) throw FailedPrecondition("live: somebody records this process already");
    struct stat there {};
    if (lstat(path.c_str(), &there) == 0) throw FailedPrecondition(fmt::format("live: \"{}\" exists already", path));
    recorder = std::make_unique<TraceRecorder>(TraceOptions{.path = path});
    recorded = path;
    ends.reset();
  }

  // A recording ends when its client is gone or its time is up.
  void go_on_recording(short events) noexcept {
    const bool done = ends && Clock::now() >= *ends;
    if (events != 0 || done) return end_recording(done);
    try {
      recorder->flush();
    } catch (const std::exception& error) {
      log_message(LogLevel::warning, error.what());
      end_recording();
    }
  }

  void end_recording(bool answers = false) noexcept try {
    if (!recorder) return;
    const Socket asker = std::move(follower);
    const std::unique_ptr<TraceRecorder> ended = std::move(recorder);
    try {
      ended->finish();
      const TraceCounters counters = ended->counters();
      if (answers)
        send_line(asker.file(), json_text(Json{{"recorded", recorded},
                                               {"events", counters.events},
                                               {"dropped_events", counters.dropped_events}}));
    } catch (const std::exception& error) {
      if (answers) send_line(asker.file(), error_text(error.what()));
    }
  } catch (const std::exception& error) {
    log_message(LogLevel::warning, error.what());
  }

  const int process;
  const std::string name;
  Socket place, listener, wake;
  std::thread thread;
  // The thread's own.
  std::unique_ptr<TraceRecorder> recorder;
  std::string recorded;
  std::optional<Clock::time_point> ends;
  Socket follower;
};

LiveQuestions::LiveQuestions(const LiveFolder& folder, int process)
    : state_(std::make_unique<State>(folder, process)) {}

LiveQuestions::~LiveQuestions() {
  if (getpid() != state_->process) {
    static_cast<void>(state_.release());
    return;
  }
  const std::uint64_t one = 1;
  static_cast<void>(write(state_->wake.file(), &one, sizeof(one)));
  state_->thread.join();
  remove();
}

void LiveQuestions::remove() noexcept {
  if (getpid() == state_->process) unlinkat(state_->place.file(), state_->name.c_str(), 0);
}

void LiveQuestions::leave_to_parent() noexcept {
  state_->listener.reset();
  state_->follower.reset();
}

namespace {

Socket connect_to(int process) {
  const LiveFolder folder(false);
  const std::string name = std::to_string(process) + ".socket";
  Socket made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_in(folder.file(), name);
  if (folder.file() < 0 || made.file() < 0 ||
      connect(made.file(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    throw NotFound(fmt::format(
        "live: process {} answers no questions; it has no LiveView (PLIMSOLL_LIVE=1) or has ended", process));
  return made;
}

std::string ask(int socket, int process, const std::string& question, double seconds) {
  send_line(socket, question);
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const auto line = read_line(socket, until, kMostAnswer);
  if (!line) throw Error(fmt::format("live: process {} did not answer within {:g} s", process, seconds));
  const nlohmann::json answer = try_parse_json(*line);
  if (!answer.is_object()) throw Error(fmt::format("live: process {} gave an answer that is not JSON", process));
  if (const auto error = answer.find("error"); error != answer.end() && error->is_string())
    throw Error(fmt::format("live: process {}: {}", process, text_of(error->get<std::string>().c_str())));
  return *line;
}

}  // namespace

std::string ask_live_process(int process, const std::string& question, double seconds) {
  if (question.find('\n') != std::string::npos || question.size() > kMostLine)
    throw InvalidArgument("live: a question is one line of at most 4096 bytes");
  return ask(connect_to(process).file(), process, question, seconds);
}

FollowedProcess::FollowedProcess(int process, const std::string& path) {
  Socket made = connect_to(process);
  ask(made.file(), process, "follow " + path, 10);
  file_ = fcntl(made.file(), F_DUPFD_CLOEXEC, 3);
  if (file_ < 0) throw_system_error("live", path, "keep open", errno);
}

FollowedProcess::~FollowedProcess() {
  if (file_ >= 0) close(file_);
}

bool FollowedProcess::is_alive() const {
  char byte;
  const ssize_t count = recv(file_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace plimsoll::internal
