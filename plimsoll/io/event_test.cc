#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <map>
#include <thread>

#include "plimsoll/base/file_size_limit_testing.h"
#include "plimsoll/io/event_reader.h"
#include "plimsoll/io/event_writer.h"
#include "plimsoll/io/io_testing.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
namespace fs = std::filesystem;

class Events : public FileFixture {
 protected:
  static std::vector<SummaryEvent> all(const fs::path& path) {
    std::vector<SummaryEvent> events;
    EventReader reader(path);
    while (auto event = reader.next()) events.push_back(*event);
    return events;
  }
};

GraphDefinition small_graph() {
  GraphDefinition graph;
  graph.nodes.push_back(
      {.name = "x", .op = "Placeholder", .device = "CPU:0", .output_shapes = {{-1, 4}}, .output_dtypes = {f32}});
  graph.nodes.push_back({.name = "dense/MatMul",
                         .op = "MatMul",
                         .inputs = {"x", "dense/kernel"},
                         .device = "CPU:1",
                         .attributes = {{"note", "hi"}}});
  return graph;
}

TEST_F(Events, AreReadAsWritten) {
  fs::path path;
  {
    EventWriter writer(directory_ / "logs" / "train");
    path = writer.path();
    writer.add_scalar("loss", 0.25f, 0);
    writer.add_scalar("zero", 0.f, 7);
    writer.add_histogram("w", tensor_of<float>({6}, {-1, 0, 0, 0.5f, 2, std::numeric_limits<float>::infinity()}), 3);
    writer.add_text("notes", "**hello**", 1);
    writer.add_image("img", patterned({2, 3, 3}, u8), 2);
    writer.add_graph(small_graph());
    writer.add_run_metadata("step 3",
                            {.devices = {{.name = "CPU:0", .nodes = {{.name = "dense/MatMul", .bytes = 4096}}}}}, 3);
    writer.flush();
    writer.close();
    EXPECT_THROW(writer.add_scalar("late", 1, 1), FailedPrecondition);
  }
  EXPECT_THAT(path.filename().string(), StartsWith("events.out.tfevents."));
  const std::vector<SummaryEvent> events = all(path);
  ASSERT_EQ(events.size(), 8u);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_GT(events[0].wall_time, 1.6e9);
  EXPECT_EQ(events[1].values.at(0).tag, "loss");
  EXPECT_EQ(events[1].values[0].scalar, 0.25f);
  EXPECT_EQ(events[2].step, 7);
  EXPECT_EQ(events[2].values.at(0).kind, "scalar");
  const EventHistogram& histogram = events[3].values.at(0).histogram;
  EXPECT_EQ(histogram.count, 5);
  EXPECT_EQ(histogram.min, -1);
  EXPECT_EQ(histogram.max, 2);
  EXPECT_EQ(histogram.sum, 1.5);
  EXPECT_EQ(histogram.sum_of_squares, 5.25);
  ASSERT_EQ(histogram.limits.size(), histogram.counts.size());
  EXPECT_TRUE(std::is_sorted(histogram.limits.begin(), histogram.limits.end()));
  double counted = 0;
  for (std::size_t i = 0; i < histogram.limits.size(); ++i) {
    counted += histogram.counts[i];
    if (histogram.limits[i] == 0) {
      EXPECT_EQ(counted, 1) << "zeros are above zero's limit";
    }
  }
  EXPECT_EQ(counted, 5);
  EXPECT_EQ(events[4].values.at(0).kind, "text");
  EXPECT_EQ(events[4].values[0].text, "**hello**");
  EXPECT_EQ(events[5].values.at(0).kind, "image");
  EXPECT_EQ(events[5].values[0].width, 3);
  EXPECT_THAT(events[5].values[0].text, StartsWith("\x89PNG\r\n"));
  const GraphSummary graph = summarize_graph(events[6].graph);
  EXPECT_THAT(graph.names, ElementsAre("x", "dense/MatMul"));
  EXPECT_THAT(graph.ops, ElementsAre("Placeholder", "MatMul"));
  EXPECT_THAT(graph.devices[1], HasSubstr("device:CPU:1"));
  EXPECT_EQ(events[7].run_tag, "step 3");
  EXPECT_THAT(events[7].run_metadata, HasSubstr("dense/MatMul"));
}

TEST_F(Events, HistogramsAreOfEveryDtype) {
  EventWriter writer(directory_);
  for (const DType dtype : kAllDTypes) writer.add_histogram(to_string(dtype), patterned({1000}, dtype), 0);
  writer.add_histogram("empty", patterned({0}, f32), 0);
  writer.close();
  EXPECT_EQ(all(writer.path()).size(), 12u);
}

TEST_F(Events, RefuseWhatIsNotAnImage) {
  EventWriter writer(directory_);
  EXPECT_THROW(writer.add_image("i", patterned({2, 2, 3}, f32), 0), InvalidArgument);
  EXPECT_THROW(writer.add_image("i", patterned({2, 2, 2}, u8), 0), InvalidArgument);
  EXPECT_THROW(writer.add_image("i", patterned({2, 2}, u8), 0), InvalidArgument);
  EXPECT_THROW(writer.add_image("i", patterned({0, 2, 1}, u8), 0), InvalidArgument);
}

TEST_F(Events, ATimerFlushesToTheDiskWhileOthersWrite) {
  EventWriter writer(directory_, {.flush_seconds = 0.001});
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&writer] {
      for (int step = 0; step < 50; ++step) writer.add_scalar("loss", 1, step);
    });
  for (std::thread& thread : threads) thread.join();
  writer.close();
  EXPECT_EQ(all(writer.path()).size(), 151u);
  EventWriter idle(directory_, {.flush_seconds = 3600});  // Ends without waiting for its timer.
}

TEST_F(Events, WritersNeverShareAFile) {
  EventWriter a(directory_), b(directory_);
  EXPECT_NE(a.path(), b.path());
}

TEST_F(Events, LoseAtMostTheLastRecordWhenKilled) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    EventWriter writer(directory_);
    for (int step = 0; step < 100; ++step) writer.add_scalar("loss", 1, step);
    [[maybe_unused]] const ssize_t sent = write(ready[1], "x", 1);
    pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(all(directory_ / names().at(0)).size(), 101u);
}

TEST_F(Events, ATemporarilyFullDiskLosesOnlyTheRecordsOfThatTime) {
  EventWriter writer(directory_);
  writer.add_scalar("before", 1, 0);
  std::string message;
  {
    const FileSizeLimit full(static_cast<rlim_t>(fs::file_size(writer.path())) + 10);  // A part of a record fits.
    message = message_of<Error>([&] { writer.add_scalar("lost", 1, 1); });
  }
  EXPECT_THAT(message, HasSubstr(writer.path().native()));
  EXPECT_THAT(message, testing::ContainsRegex("cannot write [0-9]+ bytes after the first [0-9]+"));
  writer.add_scalar("after", 1, 2);
  writer.close();
  std::vector<std::string> tags;
  for (const SummaryEvent& event : all(writer.path()))
    for (const EventValue& value : event.values) tags.push_back(value.tag);
  EXPECT_THAT(tags, ElementsAre("before", "after"));
}

TEST_F(Events, AWriterThatCannotBeginLeavesNoFile) {
  const FileSizeLimit full(5);
  EXPECT_THROW(EventWriter writer(directory_), Error);
  EXPECT_THAT(names(), testing::IsEmpty());
}

TEST_F(Events, TruncatedFilesAreReadUpToTheLastWholeRecord) {
  EventWriter writer(directory_ / "logs");
  writer.add_scalar("loss", 1, 1);
  writer.close();
  const std::string whole = get(writer.path());
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    EventReader reader(std::as_bytes(std::span(cut)));
    std::size_t records = 0;
    while (reader.next()) ++records;
    EXPECT_LE(records, 2u);
    EXPECT_EQ(reader.is_truncated(), size != 0 && size != whole.size() && !(records == 1 && size == 40)) << size;
  }
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EventReader reader(std::as_bytes(std::span(flipped)));
    EXPECT_THAT(message_of<Corruption>([&] {
                  while (reader.next()) {
                  }
                }),
                HasSubstr("offset "))
        << bit;
  }
}

TEST_F(Events, RecordsAreThoseOfTheKnownAnswer) {
  const fs::path path =
      fs::path(SHARED_DATA) / "fetched/tf_checkpoint/tensorflow_rust/test_resources/io/expected.tfrecord";
  if (!fs::exists(path)) GTEST_SKIP() << "not available: " << path;
  RecordReader records(path);
  EXPECT_EQ(records.next(), "The Quick Brown Fox");
  EXPECT_EQ(records.next(), std::nullopt);
  EXPECT_FALSE(records.is_truncated());
}

TEST_F(Events, RealFilesHaveTheirListedValues) {
  const fs::path fetched = fs::path(SHARED_DATA) / "fetched/tfevents";
  if (!fs::exists(fetched)) GTEST_SKIP() << "not available: " << fetched;
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fetched)) {
    if (entry.path().filename().string().find("tfevents") == std::string::npos || entry.is_directory()) continue;
    const std::vector<SummaryEvent> events = all(entry.path());
    ++files;
    if (events.size() != 83) continue;
    EXPECT_EQ(summarize_graph(events[1].graph).num_nodes, 562u);
    std::map<std::string, std::vector<float>> scalars;
    for (const SummaryEvent& event : events)
      for (const EventValue& value : event.values) scalars[value.tag].push_back(value.scalar);
    EXPECT_EQ(scalars["acc"].size(), 20u);
    EXPECT_NEAR(scalars["acc"].at(0), 0.92340, 1e-5);
    EXPECT_NEAR(scalars["acc"].at(1), 0.96900, 1e-5);
    EXPECT_NEAR(scalars["loss"].at(0), 0.24737, 1e-5);
    EXPECT_NEAR(scalars["val_acc"].at(0), 0.9587, 1e-5);
  }
  EXPECT_GE(files, 2u);
}

TEST_F(Events, FormsThatTensorboardReadsAreReadAlike) {
  const fs::path path = fs::path(SHARED_DATA) / "fixtures/selfmade/tfevents/events.out.tfevents.1700000000.host";
  if (!fs::exists(path)) GTEST_SKIP() << "not available: " << path;
  std::map<std::string, std::string> kinds;
  for (const SummaryEvent& event : all(path))
    for (const EventValue& value : event.values) {
      kinds[value.tag] = value.kind;
      if (value.tag == "acc_tensor") {
        EXPECT_EQ(value.scalar, 0.75f);
      }
      if (value.tag == "notes") {
        EXPECT_EQ(value.text, "**hello**");
      }
      if (value.tag == "w_legacy") {
        EXPECT_EQ(value.histogram.count, 8);
      }
    }
  EXPECT_EQ(kinds["loss"], "scalar");
  EXPECT_EQ(kinds["notes"], "text");
  EXPECT_EQ(kinds["w_legacy"], "histogram");
  EXPECT_EQ(kinds["img"], "image");
}

}  // namespace
}  // namespace plimsoll
