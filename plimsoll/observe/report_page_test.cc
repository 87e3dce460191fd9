#include "plimsoll/observe/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/observe/report_columns.h"
#include "plimsoll/observe/trace_maker_testing.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string unbase64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned value = 0, bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    value = value << 6 | static_cast<unsigned>(digits.find(c));
    bits += 6;
    if (bits >= 8) bytes += static_cast<char>(value >> (bits -= 8) & 255);
  }
  return bytes;
}

std::string unpacked(const std::string& text, std::size_t bytes) {
  const std::string packed = unbase64(text);
  std::string result(bytes, '\0');
  uLongf size = bytes;
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(result.data()), &size, reinterpret_cast<const Bytef*>(packed.data()),
                       packed.size()),
            Z_OK);
  result.resize(size);
  return result;
}

// The numbers of a column in the data; empty when missing.
std::vector<std::uint32_t> column(const std::string& data, const std::string& name) {
  std::vector<std::uint32_t> numbers;
  const std::regex element("data-column=\"" + name + "\" data-count=\"([0-9]+)\" data-planes=\"([0-9])\">([^<]*)<");
  for (std::sregex_iterator it(data.begin(), data.end(), element), end; it != end; ++it) {
    const std::size_t count = std::stoul((*it)[1]);
    const std::size_t width = std::stoul((*it)[2]);
    const std::string planes = unpacked((*it)[3], count * width);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t number = 0;
      for (std::size_t plane = 0; plane < width; ++plane)
        number |= std::uint32_t{static_cast<unsigned char>(planes[plane * count + i])} << 8 * plane;
      numbers.push_back(number);
    }
  }
  return numbers;
}

TraceMaker sample() {
  TraceMaker trace;
  trace.step(0);
  const auto a = trace.allocate(100, {.op = "matmul", .scope = "dense</script>"}, 64);
  trace.allocate(1 << 20);
  trace.free(a);
  trace.commit(1 << 21);
  return trace;
}

std::string data_of(const TraceMaker& trace) {
  const TraceHistory history = make_trace_history(trace.file);
  const RunSummary run = summarize(history);
  return report_data(history, run, diagnose(history, run), "a & b");
}

TEST(ReportColumns, PackNumbersAsPlanes) {
  const std::vector<std::uint32_t> numbers{0, 1, 255, 256, 0xDEADBEEF};
  const std::string planes = unpacked(pack_column(numbers, 4), 20);
  EXPECT_EQ(static_cast<unsigned char>(planes[4]), 0xEF);
  EXPECT_EQ(static_cast<unsigned char>(planes[19]), 0xDE);
  EXPECT_EQ(unpacked(pack_bytes("text"), 4), "text");
  EXPECT_EQ(planes_of(numbers), 4u);
  EXPECT_EQ(planes_of(std::span(numbers).first(3)), 1u);
  EXPECT_EQ(planes_of(std::span(numbers).first(4)), 2u);
  EXPECT_EQ(unpacked(pack_column(std::span(numbers).first(4), 2), 8).size(), 8u);
}

TEST(ReportData, HoldsEveryBlock) {
  const std::string data = data_of(sample());
  EXPECT_EQ(column(data, "times"), (std::vector<std::uint32_t>{2000, 1000, 1000}));
  EXPECT_EQ(column(data, "born"), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(column(data, "life"), (std::vector<std::uint32_t>{2, 0}));
  EXPECT_EQ(column(data, "size"), (std::vector<std::uint32_t>{2, 1 << 14}));
  EXPECT_EQ(column(data, "slack"), (std::vector<std::uint32_t>{28, 0}));
  EXPECT_EQ(column(data, "mark_kind"), (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(column(data, "commit_bytes"), (std::vector<std::uint32_t>{1 << 15}));
  EXPECT_THAT(column(data, "arena"), testing::IsEmpty());  // There is only one.
}

TEST(ReportData, CountsLongWaitsInCoarserTicks) {
  TraceMaker trace = sample();
  trace.allocate(64);
  trace.file.events.back().time_ns = 60'000'000'000;
  const std::string data = data_of(trace);
  const std::vector<std::uint32_t> times = column(data, "times");
  const std::uint64_t tick = 60'000'000'000 / 0xFFFFFFFFu + 1;
  std::uint64_t sum = 0;
  for (const std::uint32_t time : times) sum += time;
  EXPECT_EQ(sum, 60'000'000'000 / tick);
}

TEST(ReportPage, IsOneFileThatLoadsNothing) {
  if (!has_report_page()) GTEST_SKIP() << "the library was built without the page";
  const TraceHistory history = make_trace_history(sample().file);
  const RunSummary run = summarize(history);
  const std::string page = report_page(history, run, diagnose(history, run), "run.trace");
  EXPECT_THAT(page, testing::StartsWith("<!doctype html>"));
  EXPECT_THAT(page, Not(HasSubstr("plimsoll:data")));
  EXPECT_THAT(page, Not(HasSubstr("/*script*/")));
  EXPECT_THAT(page, Not(HasSubstr("dense</script>")));
  EXPECT_FALSE(std::regex_search(page, std::regex("(src|href|action)=[\"']?(https?:)?//")));
  EXPECT_FALSE(std::regex_search(page, std::regex("@import|url\\((?!data:)[^)]")));
  for (const char* part : {"id=\"findings\"", "id=\"timeline\"", "id=\"map\"", "id=\"icicle\"", "id=\"table\""})
    EXPECT_THAT(page, HasSubstr(part));
}

TEST(WriteReport, SaysWhatIsWrongWithItsFiles) {
  if (!has_report_page()) GTEST_SKIP() << "the library was built without the page";
  const std::filesystem::path folder = testing::TempDir();
  EXPECT_THROW(write_report(folder / "no_such.trace", folder / "out.html"), NotFound);
  EXPECT_FALSE(std::filesystem::exists(folder / "out.html"));
}

TEST(ReportPage, SaysThatItIsMissing) {
  if (has_report_page()) GTEST_SKIP() << "it is there";
  EXPECT_THROW(write_report("any.trace", "any.html"), Unsupported);
}

}  // namespace
}  // namespace plimsoll
