// FileWriter: writes a graph and the results of its runs, for TensorBoard.
//
//   summary::FileWriter writer("logs", graph);                      // the graph's nodes, scopes and devices
//   for (...) writer.add_scalar("loss", session.run(loss, feeds).item<float>(), step);
//   writer.add_run_metadata("step 7", run_metadata({train}, feeds), 7);   // memory of each node
//
// Writes one event file in the folder, which is created (event_writer.h says how it is written and what a killed
// process loses). TensorBoard groups names at "/" into boxes and colours by device, and by memory and time once there
// are run metadata. Thread safety: any thread may add. Cost: a system call for a scalar; a graph once, proportional to
// its nodes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/io/event_writer.h"
#include "plimsoll/io/graph_definition.h"

namespace plimsoll::summary {

// The nodes of a graph as they are now. Nodes that read a variable depend on the variable's own node, which depends on
// its initial value.
PLIMSOLL_API GraphDefinition graph_definition(const Graph& graph);

// The memory that the nodes needed for these fetches take with these feeds, computed from their sizes without running
// them: bytes of their outputs, of outputs and scratch together, and of outputs that a later node reads. Times are not
// known: each counts as one microsecond. Throws InvalidArgument as Session::run() does for feeds and sizes that do not
// fit.
PLIMSOLL_API RunMetadata run_metadata(const std::vector<Tensor>& fetches, const Feeds& feeds = {});

class PLIMSOLL_API FileWriter {
 public:
  // Throws Error when the folder or the file cannot be made.
  explicit FileWriter(const std::filesystem::path& directory, const EventWriterOptions& options = {});
  FileWriter(const std::filesystem::path& directory, const Graph& graph, const EventWriterOptions& options = {});

  // All throw FailedPrecondition after close(), and Error when the disk refuses.
  void add_scalar(std::string_view tag, float value, std::int64_t step) { events_.add_scalar(tag, value, step); }
  void add_histogram(std::string_view tag, const Tensor& values, std::int64_t step) {
    events_.add_histogram(tag, values, step);
  }
  void add_text(std::string_view tag, std::string_view markdown, std::int64_t step) {
    events_.add_text(tag, markdown, step);
  }
  // Throws InvalidArgument for anything but u8 of shape [height, width, 1, 3 or 4].
  void add_image(std::string_view tag, const Tensor& pixels, std::int64_t step) {
    events_.add_image(tag, pixels, step);
  }
  void add_graph(const Graph& graph);  // The last graph added is shown.
  void add_run_metadata(std::string_view tag, const RunMetadata& metadata, std::int64_t step) {
    events_.add_run_metadata(tag, metadata, step);
  }

  void flush() { events_.flush(); }  // To the disk.
  void close() { events_.close(); }  // A second call does nothing.
  const std::filesystem::path& path() const noexcept { return events_.path(); }

 private:
  EventWriter events_;
};

}  // namespace plimsoll::summary
