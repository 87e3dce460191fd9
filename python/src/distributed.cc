// Training by many processes: jobs, and what a fit spreads over one.
#include "distributed.h"

#include <chrono>

#include "plimsoll/distributed/collectives.h"

namespace binding {
namespace {

namespace jobs = pl::distributed;

std::unique_ptr<jobs::Job> make_job(const std::string& engine, double timeout) {
  if (!(timeout > 0 && timeout < 1e9)) throw nb::value_error("Job: the timeout is a number of seconds above 0");
  const std::chrono::milliseconds limit(static_cast<std::int64_t>(timeout * 1000));
  return unlocked([&] { return std::make_unique<jobs::Job>(jobs::JobOptions{.engine = engine, .timeout = limit}); });
}

}  // namespace

jobs::TrainingOptions to_training(nb::handle object) {
  if (object.is_none()) return {};
  if (nb::isinstance<JobObject>(object)) return {.job = &nb::cast<JobObject&>(object).get()};
  if (!nb::isinstance<TrainingObject>(object))
    throw nb::type_error("distributed: a pl.distributed.Job, or a pl.distributed.Training of one");
  const TrainingObject& training = nb::cast<TrainingObject&>(object);
  return {.job = &nb::cast<JobObject&>(training.job).get(),
          .slices = training.slices,
          .shard_optimizer = training.shard_optimizer,
          .shard_parameters = training.shard_parameters};
}

void bind_distributed(Module& m) {
  Module d = m.def_submodule("distributed", "Training by many processes, that mpirun started.");
  nb::class_<JobObject>(d, "Job")
      .def(
          "__init__",
          [](JobObject* self, const std::string& engine, double timeout) {
            new (self) JobObject(make_job(engine, timeout));
          },
          nb::arg("engine") = "mpi", nb::arg("timeout") = 30.0,
          nb::sig("def __init__(self, engine: str = 'mpi', timeout: float = 30.0) -> None"))
      .def_prop_ro("rank", [](const JobObject& j) { return j.get().rank(); })
      .def_prop_ro("size", [](const JobObject& j) { return j.get().size(); })
      .def_prop_ro("engine", [](const JobObject& j) { return std::string(j.get().engine()); })
      .def_prop_ro("is_open", [](const JobObject& j) { return j.job && j.job->is_open(); })
      .def(
          "host", [](const JobObject& j, int rank) { return j.get().host(rank); }, nb::arg("rank"))
      .def_prop_ro(
          "traffic",
          [](const JobObject& j) {
            const jobs::Traffic& traffic = j.get().traffic();
            nb::dict row;
            row["sent_bytes"] = traffic.sent_bytes;
            row["received_bytes"] = traffic.received_bytes;
            row["sent_messages"] = traffic.sent_messages;
            row["waited_seconds"] = traffic.waited_seconds;
            return row;
          },
          nb::sig("def traffic(self) -> dict[str, float]"), "What this process has sent and received.")
      .def(
          "barrier",
          [](JobObject& j) {
            unlocked([&] {
              jobs::barrier(j.get());
              return 0;
            });
          },
          "Returns when all have come.")
      .def("close", &JobObject::close, "An orderly end, when all processes leave.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> Job"))
      .def(
          "__exit__", [](JobObject& j, const nb::args&) { j.close(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
  nb::class_<TrainingObject>(d, "Training")
      .def(
          "__init__",
          [](TrainingObject* self, nb::object job, std::size_t slices, bool shard, bool shard_parameters) {
            if (!nb::isinstance<JobObject>(job)) throw nb::type_error("Training: of a pl.distributed.Job");
            new (self) TrainingObject{std::move(job), slices, shard, shard_parameters};
          },
          nb::arg("job"), nb::arg("slices") = 0, nb::arg("shard_optimizer") = false,
          nb::arg("shard_parameters") = false,
          nb::sig("def __init__(self, job: Job, slices: int = 0, shard_optimizer: bool = False, "
                  "shard_parameters: bool = False) -> None"),
          "The same slices give the same bits for any number of processes; 0: one for each.");
}

}  // namespace binding
