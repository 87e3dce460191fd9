#include "plimsoll/plan/lifetimes_csv.h"

#include <gmock/gmock.h>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

std::string fault(std::string_view text) {
  try {
    parse_lifetimes(text, "x.csv");
  } catch (const Corruption& error) {
    return error.what();
  }
  return "";
}

TEST(LifetimesCsv, ReadsColumnsInAnyOrderAndSkipsBlankAndCommentLines) {
  const Lifetimes got = parse_lifetimes("size,id,upper,lower\r\n\n# note\n8, a ,3,-1\r\n", "x.csv");
  ASSERT_EQ(got.buffers.size(), 1u);
  EXPECT_EQ(got.ids[0], "a");
  EXPECT_EQ(got.buffers[0].size, 8u);
  EXPECT_EQ(got.buffers[0].lower, -1);
  EXPECT_EQ(got.buffers[0].upper, 3);
  EXPECT_TRUE(got.offsets.empty());
}

TEST(LifetimesCsv, ReadsGapsWithWindows) {
  const Lifetimes got = parse_lifetimes("id,lower,upper,size,gaps\na,0,9,16,1-2 4-6@8:16\nb,0,1,4,\n", "x.csv");
  ASSERT_EQ(got.buffers[0].gaps.size(), 2u);
  EXPECT_EQ(got.buffers[0].gaps[0].window_upper, 0u);
  EXPECT_EQ(got.buffers[0].gaps[1].lower, 4);
  EXPECT_EQ(got.buffers[0].gaps[1].upper, 6);
  EXPECT_EQ(got.buffers[0].gaps[1].window_lower, 8u);
  EXPECT_EQ(got.buffers[0].gaps[1].window_upper, 16u);
  EXPECT_TRUE(got.buffers[1].gaps.empty());
}

TEST(LifetimesCsv, ReadsBackWhatItWrites) {
  Lifetimes lifetimes;
  lifetimes.ids = {"a", "b", "c"};
  lifetimes.buffers = {{.size = 64, .lower = 0, .upper = 9, .alignment = 64, .gaps = {{1, 3, 0, 8}, {4, 5, 0, 0}}},
                       {.size = 8, .lower = 1, .upper = 2, .alias_set = 3, .alias_offset = 16},
                       {.size = 0, .lower = -5, .upper = 2}};
  lifetimes.offsets = {0, 80, 0};
  const std::string text = format_lifetimes(lifetimes);
  const Lifetimes again = parse_lifetimes(text, "x.csv");
  EXPECT_EQ(format_lifetimes(again), text);
  EXPECT_EQ(instance_hash(again.buffers), instance_hash(lifetimes.buffers));
  EXPECT_EQ(again.offsets, lifetimes.offsets);
}

TEST(LifetimesCsv, RefusesAPlanOfAnotherInstance) {
  const Lifetimes lifetimes{{"a"}, {{.size = 64, .lower = 0, .upper = 9}}, {0}};
  std::string text = format_lifetimes(lifetimes);
  text.replace(text.find("0,9,64"), 6, "0,9,65");
  EXPECT_EQ(fault(text), "x.csv:1:26: the plan was made for another instance; make a new one");
}

TEST(LifetimesCsv, HashDependsOnEverythingThatShapesAPlan) {
  const Buffer plain{.size = 64, .lower = 0, .upper = 9};
  std::vector<Buffer> variants(8, plain);
  variants[1].size = 65;
  variants[2].lower = -1;
  variants[3].upper = 8;
  variants[4].alignment = 2;
  variants[5].gaps = {{1, 2, 0, 0}};
  variants[6].alias_set = 1;
  variants[7].gaps = {{1, 2, 0, 1}};
  for (std::size_t a = 0; a < variants.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) EXPECT_NE(instance_hash({variants[a]}), instance_hash({variants[b]})) << a << b;
}

TEST(LifetimesCsv, NamesLineColumnAndReasonOfEveryFault) {
  const std::string head = "id,lower,upper,size\n";
  EXPECT_EQ(fault(""), "x.csv:0:1: no header line; the first line must name the columns id,lower,upper,size");
  EXPECT_EQ(fault("id,lower,upper\n"), "x.csv:1:15: column \"size\" is missing");
  EXPECT_EQ(fault("id,lower,upper,size,id\n"), "x.csv:1:21: column \"id\" appears twice");
  EXPECT_THAT(fault("id,lower,upper,size,wide\n"),
              testing::StartsWith("x.csv:1:21: unknown column \"wide\"; known are"));
  EXPECT_EQ(fault(head + "a,1,2,3\nb,1,2\n"), "x.csv:3:6: 3 fields where the header has 4");
  EXPECT_EQ(fault(head + "a,1,2,3,4\n"), "x.csv:2:9: 5 fields where the header has 4");
  EXPECT_EQ(fault(head + "a,1,x2,3\n"), "x.csv:2:5: upper \"x2\" is not a whole number");
  EXPECT_EQ(fault(head + "a,1,,3\n"), "x.csv:2:5: upper \"\" is not a whole number");
  EXPECT_EQ(fault(head + "a,1,2,-3\n"), "x.csv:2:7: size \"-3\" is not a whole number");
  EXPECT_EQ(fault(head + "a,1,2,1.5\n"), "x.csv:2:7: size \"1.5\" is not a whole number");
  EXPECT_EQ(fault(head + "a,1,2,99999999999999999999\n"),
            "x.csv:2:7: size \"99999999999999999999\" does not fit 64 bits");
  EXPECT_EQ(fault(head + "a,2,2,3\n"), "x.csv:2:5: upper 2 is not greater than lower 2; lifetimes are half-open");
  EXPECT_EQ(fault(head + "a,1,2,3\na,1,2,3\n"), "x.csv:3:1: id \"a\" was used in line 2");
  EXPECT_EQ(fault(head + ",1,2,3\n"), "x.csv:2:1: the id is empty");
}

TEST(LifetimesCsv, NamesFaultsOfOptionalColumns) {
  EXPECT_EQ(fault("id,lower,upper,size,alignment\na,1,2,3,0\n"), "x.csv:2:9: alignment is 0; use 1 for none");
  const std::string head = "id,lower,upper,size,gaps\n";
  EXPECT_EQ(fault(head + "a,1,9,3,2\n"), "x.csv:2:9: gap \"2\" is not of the form 2-5 or 2-5@0:256");
  EXPECT_EQ(fault(head + "a,1,9,3,2-3 4-10\n"), "x.csv:2:13: gap \"4-10\" is empty or outside of the lifetime");
  EXPECT_EQ(fault(head + "a,1,9,3,2-3@0:4\n"),
            "x.csv:2:9: window of gap \"2-3@0:4\" is outside of the buffer's 3 bytes");
  EXPECT_THAT(fault("# plimsoll plan instance=12\nid,lower,upper,size\n"), testing::HasSubstr("16 hexadecimal digits"));
}

TEST(LifetimesCsv, NamesTheFileThatIsMissing) { EXPECT_THROW(read_lifetimes("no/such/file.csv"), NotFound); }

}  // namespace
}  // namespace plimsoll
