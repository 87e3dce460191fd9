// What fit() is given of a job of many processes.
#pragma once

#include <memory>

#include "common.h"

#include "plimsoll/distributed/job.h"

namespace binding {

// It waits for the others at its end: without Python's lock.
struct JobObject {
  explicit JobObject(std::unique_ptr<pl::distributed::Job> j) : job(std::move(j)) {}
  JobObject(JobObject&&) = default;
  ~JobObject() { close(); }
  void close() {
    if (!job) return;
    const nb::gil_scoped_release release;
    job.reset();
  }
  pl::distributed::Job& get() const {
    if (!job) throw pl::FailedPrecondition("Job: it is closed");
    return *job;
  }
  std::unique_ptr<pl::distributed::Job> job;
};

struct TrainingObject {
  nb::object job;
  std::size_t slices = 0;
  bool shard_optimizer = false, shard_parameters = false;
};

pl::distributed::TrainingOptions to_training(nb::handle object);  // Of None, a Job or a Training.

}  // namespace binding
