#include "plimsoll/distributed/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/distributed/unavailable.h"

namespace plimsoll::distributed {
namespace {

constexpr std::size_t kMostAtOnce = std::size_t{1} << 24;  // Of a broadcast.

enum class Kind : std::uint8_t {
  kNone,
  kError,
  kInvalidArgument,
  kFailedPrecondition,
  kNotFound,
  kCorruption,
  kUnsupported,
  kOutOfMemory
};

// An opinion as it is sent.
struct Wire {
  Kind kind = Kind::kNone;
  bool wants_stop = false;
  std::uint8_t unused[2] = {};
  std::uint32_t text_bytes = 0;
  std::uint64_t signature = 0, sufficient = 0, limit = 0, used = 0, peak = 0;
};

struct Described {
  Wire wire;
  std::string text;
};

Described describe(const Opinion& opinion) {
  Described result;
  result.wire.wants_stop = opinion.wants_stop;
  result.wire.signature = opinion.signature;
  result.wire.used = opinion.bytes_used;
  result.wire.peak = opinion.bytes_peak;
  if (!opinion.error) return result;
  const auto set = [&](Kind kind, const char* text) {
    result.wire.kind = kind;
    result.text = text;
  };
  try {
    std::rethrow_exception(opinion.error);
  } catch (const OutOfMemory& error) {
    set(Kind::kOutOfMemory, error.what());
    result.wire.sufficient = error.smallest_sufficient_limit();
    result.wire.limit = error.limit();
  } catch (const InvalidArgument& error) {
    set(Kind::kInvalidArgument, error.what());
  } catch (const FailedPrecondition& error) {
    set(Kind::kFailedPrecondition, error.what());
  } catch (const NotFound& error) {
    set(Kind::kNotFound, error.what());
  } catch (const Corruption& error) {
    set(Kind::kCorruption, error.what());
  } catch (const Unsupported& error) {
    set(Kind::kUnsupported, error.what());
  } catch (const std::exception& error) {
    set(Kind::kError, error.what());
  } catch (...) {
    set(Kind::kError, "an unknown exception");
  }
  result.wire.text_bytes = static_cast<std::uint32_t>(std::min<std::size_t>(result.text.size(), 4096));
  result.text.resize(result.wire.text_bytes);
  return result;
}

[[noreturn]] void throw_for(const Wire& wire, const std::string& text) {
  switch (wire.kind) {
    case Kind::kOutOfMemory: {
      OutOfMemoryDetails details;
      details.what = text;
      details.limit = wire.limit;
      details.smallest_sufficient_limit = details.requested = wire.sufficient;
      throw OutOfMemory(std::move(details));
    }
    case Kind::kInvalidArgument:
      throw InvalidArgument(text);
    case Kind::kFailedPrecondition:
      throw FailedPrecondition(text);
    case Kind::kNotFound:
      throw NotFound(text);
    case Kind::kCorruption:
      throw Corruption(text);
    case Kind::kUnsupported:
      throw Unsupported(text);
    case Kind::kNone:
    case Kind::kError:
      break;
  }
  throw Error(text);
}

}  // namespace

void exchange(Job& job, std::span<const std::byte> mine, std::span<std::byte> all, const char* doing) {
  const std::size_t each = mine.size();
  PLIMSOLL_CHECK(all.size() == each * static_cast<std::size_t>(job.size()));
  const int tag = job.next_tag();
  std::vector<Job::Message> messages;
  for (int rank = 0; rank < job.size(); ++rank) {
    const std::span<std::byte> room = all.subspan(static_cast<std::size_t>(rank) * each, each);
    if (rank == job.rank())
      std::copy(mine.begin(), mine.end(), room.begin());
    else
      messages.push_back(job.receive(rank, tag, room));
  }
  for (int i = 1; i < job.size(); ++i) messages.push_back(job.send((job.rank() + i) % job.size(), tag, mine));
  job.wait(messages, doing);
}

void barrier(Job& job) {
  std::vector<std::byte> all(static_cast<std::size_t>(job.size()));
  const std::byte here{1};
  exchange(job, {&here, 1}, all, "barrier");
}

// Down a binomial tree.
void broadcast(Job& job, std::span<std::byte> bytes, int root, const char* doing) {
  const int size = job.size(), place = (job.rank() - root + size) % size;
  const auto rank_at = [&](int at) { return (at + root) % size; };
  const int tag = job.next_tag();
  for (std::size_t begin = 0; size > 1 && begin < bytes.size(); begin += kMostAtOnce) {
    const std::span<std::byte> part = bytes.subspan(begin, std::min(kMostAtOnce, bytes.size() - begin));
    int distance = 1;
    for (; distance < size; distance *= 2) {
      if ((place & distance) == 0) continue;
      const Job::Message message = job.receive(rank_at(place - distance), tag, part);
      job.wait({&message, 1}, doing);
      break;
    }
    std::vector<Job::Message> messages;
    for (distance /= 2; distance > 0; distance /= 2)
      if (place + distance < size) messages.push_back(job.send(rank_at(place + distance), tag, part));
    job.wait(messages, doing);
  }
}

Verdict agree(Job& job, const Opinion& opinion) {
  const Described mine = describe(opinion);
  std::vector<Wire> all(static_cast<std::size_t>(job.size()));
  exchange(job, std::as_bytes(std::span(&mine.wire, 1)), std::as_writable_bytes(std::span(all)), "agree");
  Verdict verdict;
  for (int rank = 0; rank < job.size(); ++rank) {
    const Wire& theirs = all[static_cast<std::size_t>(rank)];
    if (theirs.wants_stop && !verdict.stop) verdict.stopped_by = rank;
    verdict.stop |= theirs.wants_stop;
    verdict.bytes_used += theirs.used;
    verdict.bytes_peak = std::max(verdict.bytes_peak, theirs.peak);
  }
  for (int rank = 0; rank < job.size(); ++rank) {
    const Wire& theirs = all[static_cast<std::size_t>(rank)];
    if (theirs.kind == Kind::kNone) continue;
    std::string text = rank == job.rank() ? mine.text : std::string(theirs.text_bytes, '\0');
    broadcast(job, std::as_writable_bytes(std::span(text)), rank, "agree");
    if (opinion.error) std::rethrow_exception(opinion.error);
    throw_for(theirs, fmt::format("{}: {}", job.describe(rank), text));
  }
  for (int rank = 1; rank < job.size(); ++rank)
    if (all[static_cast<std::size_t>(rank)].signature != all[0].signature)
      throw InvalidArgument(fmt::format("job: {} of {} is not that of {}; give every rank the same", opinion.what,
                                        job.describe(rank), job.describe(0)));
  return verdict;
}

}  // namespace plimsoll::distributed
