#include "plimsoll/cli/replay/operator_log.h"

#include <gmock/gmock.h>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

OperatorLog parse(std::string_view text, std::size_t piece = 1 << 20) {
  OperatorLogParser parser("log.csv");
  for (std::size_t at = 0; at < text.size(); at += piece) parser.feed(text.substr(at, piece));
  return parser.finish();
}

std::string refused(std::string_view text) {
  try {
    parse(text);
  } catch (const Corruption& error) {
    return error.what();
  }
  return "accepted";
}

constexpr std::string_view kSmall =
    "# phase init\n"
    "a,1,100\n"
    "# op x.given in= out=1 us=0\n"
    "# step 1\n"
    "# phase forward\n"
    "a,2,40\n"
    "a,9,7\n"
    "f,9\n"
    "# op aten.mm.default in=1 out=2 us=10\n"
    "# op aten.relu_.default in=2 out=2 us=2.5\n"
    "# op aten.view.default in=2 out=2 us=1\n"
    "# phase backward\n"
    "a,3,100\n"
    "# op aten.mm_backward in=1 2 out=3 us=20\n"
    "# phase optimizer\n"
    "f,2\n"
    "# op aten.adam_ in=1 3 out=1 us=5\n"
    "f,3\n";

TEST(OperatorLog, MakesValuesOfStoragesAndStepsOfOperators) {
  const OperatorLog log = parse(kSmall);
  const StepProgram& program = log.program;
  EXPECT_EQ(log.peak_bytes, 240u);
  EXPECT_EQ(floors_of(program).natural_peak, 240u);
  ASSERT_EQ(program.steps.size(), 6u);
  EXPECT_THAT(log.round, ElementsAre(0, 1, 1, 1, 1, 1));
  EXPECT_EQ(log.operators[2], "aten.relu_.default");
  EXPECT_FALSE(program.steps[0].may_repeat);
  EXPECT_TRUE(program.values[0].is_pinned);
  EXPECT_EQ(program.steps[1].scratch_bytes, 7u);
  EXPECT_EQ(program.steps[1].cost, 10'000u);
  EXPECT_THAT(program.steps[2].reads, ElementsAre(1));
  EXPECT_THAT(program.steps[2].writes, ElementsAre(2));
  EXPECT_THAT(program.steps[2].takes_over, ElementsAre(1));
  EXPECT_THAT(program.steps[3].reads, IsEmpty());  // A view touches nothing.
  EXPECT_TRUE(program.steps[4].is_gradient);
  EXPECT_TRUE(program.values[3].is_pinned);  // Read by the optimizer.
  EXPECT_FALSE(program.steps[5].may_repeat);
  EXPECT_THAT(program.steps[5].takes_over, ElementsAre(0));
  EXPECT_TRUE(program.values[4].is_kept);
}

TEST(OperatorLog, IsTheSameInPiecesOfAnySize) {
  for (std::size_t piece = 1; piece < 50; ++piece) {
    const OperatorLog log = parse(kSmall, piece);
    EXPECT_EQ(log.program.steps.size(), 6u);
    EXPECT_EQ(log.peak_bytes, 240u);
  }
}

TEST(OperatorLog, MemoryThatNoOperatorMakesIsPinned) {
  const OperatorLog log =
      parse("# phase forward\na,1,10\na,2,20\n# op x.f in=1 out=2 us=1\n# op x.g in=2 out= us=1\nf,2\n");
  ASSERT_EQ(log.program.steps.size(), 3u);
  EXPECT_FALSE(log.program.steps[0].may_repeat);
  EXPECT_TRUE(log.program.values[0].is_pinned);
  EXPECT_FALSE(log.program.values[1].is_pinned);
}

TEST(OperatorLog, OutputsThatNoLineAllocatesHaveNoBytes) {
  const OperatorLog log = parse("a,1,10\n# op x.f in=1 out=5 us=1\n# op x.g in=5 1 out= us=1\nf,5\n");
  EXPECT_EQ(log.program.values.size(), 1u);
}

TEST(OperatorLog, FaultsNameTheLine) {
  EXPECT_THAT(refused(""), HasSubstr("no \"# op\" line"));
  EXPECT_THAT(refused("a,1,10\n"), HasSubstr("no \"# op\" line"));
  EXPECT_THAT(refused("a,1\n"), HasSubstr("line 1: no size after id 1"));
  EXPECT_THAT(refused("a,1,10\nx,2\n"), HasSubstr("line 2: \"x,2\" is neither"));
  EXPECT_THAT(refused("a,one,10\n"), HasSubstr("line 1: id \"one\" is not a whole number"));
  EXPECT_THAT(refused("a,1,1e9\n"), HasSubstr("size \"1e9\" is not a whole number"));
  EXPECT_THAT(refused("a,1,-5\n"), HasSubstr("size \"-5\" is not a whole number"));
  EXPECT_THAT(refused("a,1,99999999999999999999999\n"), HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(refused("a,1,18446744073709551615\n"), HasSubstr("line 1: with these"));
  EXPECT_THAT(refused("a,1,60000000000000000\na,2,60000000000000000\n"), HasSubstr("line 2: with these"));
  EXPECT_THAT(refused("a,1,1\na,1,1\n"), HasSubstr("line 2: id 1 is allocated a second time"));
  EXPECT_THAT(refused("f,1\n"), HasSubstr("line 1: free of id 1, which is not live"));
  EXPECT_THAT(refused("a,1,1\nf,1,1\n"), HasSubstr("more than an id"));
  EXPECT_THAT(refused("# op x.f in=7 out= us=1\n"), HasSubstr("line 1: operator names id 7, which is not live"));
  EXPECT_THAT(refused("# op x.f in=7x out= us=1\n"), HasSubstr("id \"7x\" is not a whole number"));
  EXPECT_THAT(refused("# op x.f in= out=\n"), HasSubstr("is not \"<name> in=<ids> out=<ids> us=<microseconds>\""));
  EXPECT_THAT(refused("# op x.f out= in= us=1\n"), HasSubstr("is not \"<name>"));
  for (const char* time : {"", "x", "-1", "nan", "inf", "1e300", "1 2"})
    EXPECT_THAT(refused("# op x.f in= out= us=" + std::string(time) + "\n"),
                HasSubstr("is not a number of microseconds"));
  EXPECT_THAT(refused("# step 3\n# step 2\n"), HasSubstr("line 2: step 2 comes after step 3"));
  EXPECT_THAT(refused("# step x\n"), HasSubstr("step \"x\" is not a whole number"));
  EXPECT_THAT(refused("#" + std::string(1 << 17, 'x')), HasSubstr("line 1: longer than"));
}

TEST(OperatorLog, ReadsGzipAndNamesTheFile) {
  const OperatorLog log = read_operator_log(TEST_DATA "/oplogs/resnet18_train.csv.gz");
  EXPECT_EQ(log.name, "resnet18_train.csv.gz");
  EXPECT_EQ(log.peak_bytes, 308932040u);
  const Floors floors = floors_of(log.program);
  EXPECT_EQ(floors.natural_peak, 308932040u);
  EXPECT_EQ(floors.recompute.bytes, 247852996u);
  EXPECT_EQ(floors.spill.bytes, 102762240u);
  EXPECT_THROW(read_operator_log("/nowhere/at/all.csv"), NotFound);
}

}  // namespace
}  // namespace plimsoll
