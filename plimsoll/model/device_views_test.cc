// What people look at, for each device: alerts, budgets, statistics, traces, reports, TensorBoard and the live view. On
// the default device (the far one in far_model), on a second logical one, and on an OpenCL device.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/device/config.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/graph/file_writer.h"
#include "plimsoll/io/event_reader.h"
#include "plimsoll/memory/alerts.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/training/callbacks.h"
#include "plimsoll/observe/export_trace.h"
#include "plimsoll/observe/live/live_counters.h"
#include "plimsoll/observe/report_json.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/random.h"

namespace plimsoll {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::int64_t kMiB = 1024 * 1024 / 4;  // In elements.
constexpr std::size_t kLimit = 64_MiB;

class DeviceViews : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    config::reset_for_testing();
    const std::string which = GetParam();
    const auto all = config::list_physical_devices(which == "OpenCL" ? "OPENCL" : "");
    if (all.empty()) GTEST_SKIP() << "there is no OpenCL device";
    const PhysicalDevice physical = which == "Second" ? config::list_physical_devices("CPU").at(0) : all[0];
    const std::vector<LogicalDeviceConfiguration> logical(which == "Second" ? 2 : 1, {.memory_limit = kLimit});
    config::set_logical_device_configuration(physical, logical);
    name_ = which == "Second" ? "CPU:1" : physical.name;
    folder_ = std::filesystem::temp_directory_path() / ("plimsoll_views_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    config::reset_for_testing();
    std::filesystem::remove_all(folder_);
  }

  Tensor make(std::int64_t mebibytes) const {
    const DeviceScope on(name_);
    return full({mebibytes * kMiB}, 1.f) + 0.f;  // Not lazy.
  }
  // A model there, and data on the default device.
  void train(std::vector<Callback> callbacks = {}) const {
    Sequential model;
    {
      const DeviceScope on(name_);
      model.add(layers::Dense(16, {.activation = "relu", .input_shape = {8}, .seed = 1}));
      model.add(layers::Dropout(0.1, {.seed = 3}));
      model.add(layers::Dense(1, {.name = "last", .seed = 2}));
    }
    model.compile({.optimizer = "adam", .loss = "mse"});
    const Tensor x = random_normal({64, 8}, {.seed = 4});
    model.fit(x, x.mean({1}, {.keep_dims = true}),
              {.epochs = 2, .batch_size = 16, .verbose = 0, .callbacks = std::move(callbacks)});
  }
  std::vector<SummaryEvent> events_in(const std::filesystem::path& folder) const {
    std::vector<SummaryEvent> events;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      EventReader reader(entry.path());
      while (auto event = reader.next()) events.push_back(*event);
    }
    return events;
  }

  std::string name_;
  std::filesystem::path folder_;
};

TEST_P(DeviceViews, AlertsNameIt) {
  std::vector<std::string> alerts;
  const MemoryAlertHandle handle = on_memory_alert(0.5, [&](const MemoryAlert& alert) {
    alerts.push_back(alert.device);
    EXPECT_EQ(alert.bytes_limit, kLimit);
    EXPECT_GE(alert.bytes_in_use, kLimit / 2);
  });
  const Tensor small = make(8);
  EXPECT_THAT(alerts, IsEmpty());
  { const Tensor large = make(30); }
  EXPECT_THAT(alerts, ElementsAre(name_));
  const Tensor again = make(30);  // It fell below in between.
  EXPECT_THAT(alerts, ElementsAre(name_, name_));
}

TEST_P(DeviceViews, BudgetsHoldAndAlert) {
  const Budget budget("work", 16_MiB);
  std::vector<std::string> alerts;
  const MemoryAlertHandle handle =
      budget.on_alert(0.5, [&](const MemoryAlert& alert) { alerts.push_back(alert.budget); });
  const BudgetScope scope(budget);
  const Tensor x = make(5);
  EXPECT_EQ(budget.used(), 5_MiB);
  try {
    static_cast<void>(make(12));
    FAIL() << "not refused";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.limit(), 16_MiB);
    EXPECT_THAT(error.what(), HasSubstr("budget \"work\""));
  }
  EXPECT_EQ(budget.used(), 5_MiB);
  EXPECT_THAT(alerts, IsEmpty());
  const Tensor y = make(4);
  EXPECT_THAT(alerts, ElementsAre("work"));
  EXPECT_EQ(x.to_vector<float>().back(), 1.f);
}

TEST_P(DeviceViews, StatisticsAreItsOwn) {
  const Tensor x = make(10);
  { const Tensor y = make(20); }
  MemoryStats stats = memory_stats(name_);
  EXPECT_EQ(stats.bytes_in_use, 10_MiB);
  EXPECT_GE(stats.peak_bytes_in_use, 30_MiB);
  EXPECT_GE(stats.largest_alloc_bytes, 20_MiB);
  EXPECT_EQ(stats.bytes_limit, kLimit);
  EXPECT_LE(stats.peak_bytes_reserved, kLimit);
  EXPECT_EQ(config::get_memory_info(name_).current, 10_MiB);
  reset_memory_stats(name_);
  EXPECT_EQ(config::get_memory_info(name_).peak, 10_MiB);
  try {
    static_cast<void>(make(60));
    FAIL() << "not refused";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr(name_));
    EXPECT_EQ(error.limit(), kLimit);
  }
  for (const auto& device : Runtime::instance().devices())
    EXPECT_EQ(device->arena().stats().num_ooms, device->name() == name_ ? 1u : 0u) << device->name();
  EXPECT_GT(trim(), 0u);
  EXPECT_LT(memory_stats(name_).bytes_reserved, 30_MiB);
}

// The trace of a training and of a refusal: what the report, the doctor and the exports say of the device.
TEST_P(DeviceViews, TracesAndReportsHaveItsRows) {
  const auto path = folder_ / "run.trace";
  reset_memory_stats(name_);
  {
    TraceRecorder recorder({.path = path});
    train();
    EXPECT_THROW(static_cast<void>(make(100)), OutOfMemory);
  }
  const std::size_t peak = memory_stats(name_).peak_bytes_in_use;
  const TraceHistory history = read_trace_history(path);
  const RunSummary run = summarize(history);
  const std::vector<Finding> findings = diagnose(history, run);
  const auto json = parse_json(report_json(history, run, findings));
  std::vector<std::string> names;
  for (const auto& device : json["devices"]) {
    names.push_back(device["name"]);
    if (device["name"] != name_) continue;
    EXPECT_EQ(device["limit_bytes"], kLimit);
    EXPECT_EQ(device["peak_bytes"], peak);
    EXPECT_LE(device["peak_reserved_bytes"], kLimit);
  }
  EXPECT_THAT(names, Contains(name_));
  ASSERT_THAT(findings, Not(IsEmpty()));
  EXPECT_EQ(findings[0].kind, "refused");
  EXPECT_THAT(findings[0].title + findings[0].evidence, HasSubstr(name_));
  export_trace(path, folder_ / "run.perfetto", {.format = "perfetto"});
  std::stringstream exported;
  exported << std::ifstream(folder_ / "run.perfetto").rdbuf();
  EXPECT_THAT(exported.str(), HasSubstr("live " + name_));
}

TEST_P(DeviceViews, TensorBoardShowsWhereLayersAre) {
  train({callbacks::TensorBoard(folder_.string())});
  std::vector<std::string> devices, tags;
  for (const SummaryEvent& event : events_in(folder_ / "train")) {
    for (const EventValue& value : event.values) tags.push_back(value.tag);
    if (event.graph.empty()) continue;
    const GraphSummary graph = summarize_graph(event.graph);
    ASSERT_EQ(graph.names.size(), graph.devices.size());
    devices = graph.devices;
  }
  const auto is_there = [&](const std::string& device) { return device.ends_with("/device:" + name_); };
  EXPECT_GE(std::count_if(devices.begin(), devices.end(), is_there), 3) << testing::PrintToString(devices);
  const bool is_default = name_ == Runtime::instance().device("").name();
  EXPECT_THAT(tags, Contains("epoch_memory_peak_bytes"));
  EXPECT_THAT(tags, Contains("epoch_memory_peak_bytes" + (is_default ? "" : "/" + name_)));
}

TEST_P(DeviceViews, GraphsAndRunsSayWhereNodesAre) {
  Graph graph;
  Tensor x, y;
  {
    const GraphScope in(graph);
    x = placeholder(f32, {4}, "x");
    const PlacementScope on(name_);
    y = square(x.to(name_));
  }
  std::vector<std::string> devices;
  for (const GraphNode& node : summary::graph_definition(graph).nodes) devices.push_back(node.device);
  EXPECT_THAT(devices, Contains(name_));
  const RunMetadata metadata = summary::run_metadata({y}, {{x, ones({4})}});
  std::vector<std::string> ran;
  for (const DeviceRun& device : metadata.devices) ran.push_back(device.name);
  EXPECT_THAT(ran, Contains(name_));
}

TEST_P(DeviceViews, TheLiveViewHasIt) {
  const Tensor x = make(10);
  auto counters = std::make_unique<LiveCounters>();
  gather_live_counters(*counters, true);
  std::size_t found = 0;
  for (std::size_t i = 0; i < counters->num_devices; ++i) {
    const LiveDevice& device = counters->devices[i];
    if (std::string(device.name) != name_) continue;
    ++found;
    EXPECT_EQ(device.used, 10_MiB);
    EXPECT_EQ(device.limit, kLimit);
  }
  EXPECT_EQ(found, 1u);
}

INSTANTIATE_TEST_SUITE_P(Each, DeviceViews, testing::Values("Default", "Second", "OpenCL"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace plimsoll
