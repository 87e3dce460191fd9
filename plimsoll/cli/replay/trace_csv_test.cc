#include "plimsoll/cli/replay/trace_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

Trace parse(const std::string& text) {
  TraceParser parser("t.csv");
  parser.feed(text);
  return parser.finish();
}

std::string complaint(const std::string& text) {
  try {
    parse(text);
    return "no complaint";
  } catch (const Corruption& error) {
    return error.what();
  }
}

class TraceFile : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  std::string write_gzip(const std::string& name, const std::string& content) {
    const std::string path = (folder_ / name).string();
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
    gzclose(file);
    return path;
  }
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("trace_" + std::to_string(reinterpret_cast<std::uintptr_t>(this)));
};

TEST(TraceParser, ReadsAllocationsFreesAndComments) {
  const Trace trace = parse("# begin\na,7,100\n\na,9,50\r\nf,7\na,7,10\nf,9\nf,7\n");
  EXPECT_EQ(trace.operations.size(), 6u);
  EXPECT_EQ(trace.allocations, 3u);
  EXPECT_EQ(trace.peak_live, 150u);
  EXPECT_EQ(trace.peak_at, 1u);
  EXPECT_EQ(trace.slots, 2u);
  EXPECT_EQ(trace.never_freed, 0u);
  EXPECT_EQ(trace.operations[3].slot, trace.operations[0].slot) << "a freed slot is used again";
  EXPECT_EQ(trace.operations[2].bytes, 100u);
}

TEST(TraceParser, AcceptsAnEmptyTraceAndALastLineWithoutANewline) {
  EXPECT_EQ(parse("").operations.size(), 0u);
  EXPECT_EQ(parse("a,1,5").operations.size(), 1u);
}

TEST(TraceParser, CountsBlocksThatAreNeverFreed) { EXPECT_EQ(parse("a,1,5\na,2,5\nf,1\n").never_freed, 1u); }

TEST(TraceParser, ReadsTheSameInPiecesOfAnySize) {
  const std::string text = "# c\na,1,100\na,18446744073709551615,7\nf,1\nf,18446744073709551615\n";
  for (std::size_t piece = 1; piece < text.size(); ++piece) {
    TraceParser parser("t.csv");
    for (std::size_t at = 0; at < text.size(); at += piece) parser.feed(std::string_view(text).substr(at, piece));
    const Trace trace = parser.finish();
    ASSERT_EQ(trace.operations.size(), 4u);
    ASSERT_EQ(trace.peak_live, 107u);
  }
}

TEST(TraceParser, NamesTheLineAndTheReason) {
  EXPECT_EQ(complaint("a,1,5\nx,1\n"),
            "trace \"t.csv\": line 2: \"x,1\" is neither \"a,<id>,<bytes>\" nor \"f,<id>\" nor a comment");
  EXPECT_THAT(complaint("hello"), HasSubstr("line 1: \"hello\" is neither"));
  EXPECT_THAT(complaint("a"), HasSubstr("line 1: no id after \"a\""));
  EXPECT_THAT(complaint("a,"), HasSubstr("the id is missing"));
  EXPECT_THAT(complaint("a,1"), HasSubstr("no size after id 1"));
  EXPECT_THAT(complaint("a,1,"), HasSubstr("the size is missing"));
  EXPECT_THAT(complaint("# one\n\nf,\n"), HasSubstr("line 3: the id is missing"));
  EXPECT_THAT(complaint("a,1,5\nf,1,5"), HasSubstr("line 2: more than an id"));
  EXPECT_THAT(complaint("a,1,5,6"), HasSubstr("size \"5,6\" is not a whole number"));
  EXPECT_THAT(complaint(" a,1,5"), HasSubstr("neither"));
}

TEST(TraceParser, RefusesWhatIsNotANumber) {
  for (const char* size : {"-1", "+1", " 1", "1 ", "0x10", "1.5", "1e3", "five"})
    EXPECT_THAT(complaint(std::string("a,1,") + size), HasSubstr("is not a whole number")) << size;
  EXPECT_THAT(complaint("a,1,18446744073709551616"), HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(complaint("a,99999999999999999999,1"), HasSubstr("id \"99999999999999999999\" does not fit 64 bits"));
}

TEST(TraceParser, RefusesIdsThatMakeNoSense) {
  EXPECT_THAT(complaint("a,1,5\na,1,5\n"), HasSubstr("line 2: id 1 is allocated a second time while it is live"));
  EXPECT_THAT(complaint("f,3\n"), HasSubstr("line 1: free of id 3, which is not live"));
  EXPECT_THAT(complaint("a,3,1\nf,3\nf,3\n"), HasSubstr("line 3: free of id 3"));
}

TEST(TraceParser, RefusesMoreLiveBytesThanCanBeCounted) {
  EXPECT_THAT(complaint("a,1,18446744073709551615\na,2,1\n"), HasSubstr("line 2: with these 1 bytes more is live"));
}

TEST(TraceParser, RefusesAbsurdLinesAndShowsOnlyTheirBeginning) {
  std::string text("a,1,5\n#");
  text.append(5000, 'x');
  EXPECT_THAT(complaint(text), HasSubstr("line 2: longer than 4096 bytes"));
  EXPECT_THAT(complaint(text.substr(6) + "\n"), HasSubstr("line 1: longer than"));
  std::string binary("\x01\xff\0binary", 9);
  binary.append(100, 'y');
  EXPECT_THAT(complaint(binary), HasSubstr("\"???binaryyyy"));
}

TEST_F(TraceFile, IsReadPlainOrGzipped) {
  const std::string text = "a,1,5\nf,1\n";
  EXPECT_EQ(read_trace(write("plain.csv", text)).operations.size(), 2u);
  const Trace zipped = read_trace(write_gzip("zipped.csv.gz", text));
  EXPECT_EQ(zipped.operations.size(), 2u);
  EXPECT_EQ(zipped.name, "zipped.csv.gz");
}

TEST_F(TraceFile, IsCorruptWhenItsGzipStreamIsTruncatedOrDamaged) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "a," + std::to_string(i) + "," + std::to_string(i * 7919 % 100003) + "\n";
  std::ifstream file(write_gzip("whole.csv.gz", text), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  for (const std::size_t length : {whole.size() - 1, whole.size() - 8, whole.size() / 2, std::size_t{20}}) {
    try {
      read_trace(write("cut.csv.gz", whole.substr(0, length)));
      FAIL() << "accepted " << length << " of " << whole.size() << " bytes";
    } catch (const Corruption& error) {
      EXPECT_THAT(error.what(), HasSubstr("trace \"cut.csv.gz\": line ")) << length;
    }
  }
  std::string damaged = whole;
  damaged[damaged.size() / 2] ^= 0x55;
  EXPECT_THROW(read_trace(write("damaged.csv.gz", damaged)), Corruption);
}

TEST_F(TraceFile, IsNotFoundWhenItCannotBeOpenedOrRead) {
  EXPECT_THROW(read_trace("/nonexistent/trace.csv"), NotFound);
  EXPECT_THROW(read_trace(testing::TempDir()), NotFound);
}

TEST_F(TraceFile, OfARealTrainingHasTheKnownPeak) {
  const Trace mlp = read_trace(TEST_DATA "/traces/mlp_mnist_train.csv.gz");
  EXPECT_EQ(mlp.allocations, 2104u);
  EXPECT_EQ(mlp.peak_live, 12'186'824u);
  EXPECT_EQ(mlp.never_freed, 0u);
  EXPECT_EQ(read_trace(TEST_DATA "/traces/resnet18_train.csv.gz").peak_live, 308'932'040u);
}

}  // namespace
}  // namespace plimsoll
