// ShardStore: tensors of which each process of a job keeps a part; the rest is fetched from the others when it is
// needed.
//
//   ShardStore store(job, space, 7);         // The first seven parts of the space, cut for the ranks.
//   store.set_memory(own);                   // own_bytes(): this rank's stretches, one after the other.
//   store.open();                            // From now on it answers the others.
//   store.begin_fetch(3, to); store.wait();  // All of part 3 is at `to`.
//   store.serve();                           // Answers the others. Call it often while you compute.
//   store.close();                           // In every rank, when nobody needs anything more.
//
// Ranks may fetch different parts, in any order: a rank that waits for messages of the job answers the others
// meanwhile. Answers are sent from where the elements are: change them only between begin_change() and end_change(),
// when all ranks do and none is fetching; requests that come meanwhile are answered afterwards. Methods throw
// Unavailable. Thread safety: one thread. Cost: a request and a reply for each rank that has some of the part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/distributed/job.h"
#include "plimsoll/distributed/tensor_exchange.h"

namespace plimsoll::distributed {

class PLIMSOLL_API ShardStore {
 public:
  // Borrows the job.
  ShardStore(Job& job, const FlatSpace& space, std::size_t num_parts);
  ~ShardStore();
  ShardStore(const ShardStore&) = delete;
  ShardStore& operator=(const ShardStore&) = delete;

  static std::size_t own_bytes(const FlatSpace& space, std::size_t num_parts, int rank);
  void set_memory(std::byte* own) noexcept;  // Aligned to 64 bytes.
  void open();
  bool is_open() const noexcept { return is_open_; }
  struct Stretch {
    std::size_t first = 0, bytes = 0;  // Where in the part it begins; 0 bytes when this rank has none of it.
    std::byte* memory = nullptr;
  };
  const Stretch& own(std::size_t part) const { return own_[part]; }

  void begin_fetch(std::size_t part, std::byte* to);
  void wait();
  void serve();
  void begin_change();  // Returns when all answers have left.
  void end_change() noexcept { is_changing_ = false; }
  void close();  // Returns when all ranks have called it; does nothing when the job is over.

 private:
  struct Request {
    std::uint32_t part = 0, is_last = 0;
  };
  struct Piece {
    int rank;
    std::size_t first, bytes;
  };
  void listen(std::size_t peer);

  Job& job_;
  std::vector<std::vector<Piece>> pieces_;  // By part.
  std::vector<Stretch> own_;
  std::vector<Request> asks_;                        // One for each part, then the last one.
  std::vector<Request> asked_;                       // By peer: what it asks for.
  std::vector<std::vector<Job::Message>> incoming_;  // By peer: the request that is expected.
  std::vector<Job::Message> pending_, answers_;
  bool is_open_ = false, is_changing_ = false;
};

}  // namespace plimsoll::distributed
