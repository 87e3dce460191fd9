// Unavailable: another process of the job is gone, or does not answer in time. The program ends with exit code 75.
//
//   try { model.fit(data, {.distributed = {.job = &job}}); } catch (const Unavailable& e) { ... e.rank() ... }
//
//   fit: rank 3 (host b) did not answer for 30 s in step 120, reduce; see what became of it and restart from the last
//   checkpoint
#pragma once

#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/base/error.h"

namespace plimsoll {

class PLIMSOLL_API Unavailable : public Error {
 public:
  explicit Unavailable(const std::string& what, int rank = -1) : Error(what), rank_(rank) {}
  ~Unavailable() override;
  int rank() const noexcept { return rank_; }  // Which one; -1 when that is not known.

 private:
  int rank_;
};

}  // namespace plimsoll
