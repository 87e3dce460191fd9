#include "plimsoll/plan/plan_svg.h"

#include <gmock/gmock.h>

#include "plimsoll/base/text.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

TEST(PlanSvg, ShowsEveryBufferWithItsNumbers) {
  const Lifetimes lifetimes{
      {"a<b", "c"}, {{.size = 4096, .lower = 0, .upper = 5}, {.size = 10, .lower = 2, .upper = 9}}, {0, 4096}};
  const std::string svg = plan_svg(lifetimes, {.capacity = 8192, .lower_bound = 4106, .title = "x & y"});
  EXPECT_THAT(svg, HasSubstr("<title>a&lt;b: 4.0 KiB (4096 bytes), time 0 to 5, at 0</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>c: 10 bytes, time 2 to 9, at 4096</title>"));
  EXPECT_THAT(svg, HasSubstr("x &amp; y"));
  EXPECT_THAT(svg, HasSubstr("capacity 8.0 KiB"));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
}

TEST(PlanSvg, IsValidWhateverNamesAre) {
  const Lifetimes lifetimes{{"caf\xe9\x02"}, {{.size = 4096, .lower = 0, .upper = 5}}, {0}};
  const std::string svg = plan_svg(lifetimes, {.title = "\xff"});
  EXPECT_EQ(valid_utf8(svg), svg);
  EXPECT_EQ(svg.find('\x02'), std::string::npos);
}

TEST(PlanSvg, DrawsNothingWithoutFailing) { EXPECT_THAT(plan_svg({}, {}), testing::EndsWith("</svg>\n")); }

}  // namespace
}  // namespace plimsoll
