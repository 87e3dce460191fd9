#include "plimsoll/base/text.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

TEST(ValidUtf8, KeepsWhatIsValid) {
  for (const char* text : {"", "plain",
                           "Gr\xc3\xb6\xc3\x9f"
                           "e",
                           "\xe2\x82\xac", "\xf0\x9f\x8c\x8a"})
    EXPECT_EQ(valid_utf8(text), text);
}

TEST(ValidUtf8, ReplacesEachByteThatIsNot) {
  const std::string mark = "\xef\xbf\xbd";
  EXPECT_EQ(valid_utf8("caf\xe9"), "caf" + mark);
  EXPECT_EQ(valid_utf8("\x80"
                       "a"),
            mark + "a");
  EXPECT_EQ(valid_utf8("\xe2\x82"), mark + mark);                        // Cut off.
  EXPECT_EQ(valid_utf8("\xc0\xaf"), mark + mark);                        // Longer than necessary.
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), mark + mark + mark);             // Half of a pair.
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), mark + mark + mark + mark);  // Beyond Unicode.
  EXPECT_EQ(valid_utf8("\xef\xbf\xbf"), mark + mark + mark);             // Not a character: XML refuses it.
}

TEST(EscapeXml, LeavesNothingThatIsMarkup) {
  EXPECT_EQ(escape_xml("a<b> & \"c\"\n\x01"), "a&lt;b&gt; &amp; &quot;c&quot;  ");
  EXPECT_EQ(escape_xml("\xff<"), "\xef\xbf\xbd&lt;");
  EXPECT_EQ(escape_document("<b class=\"x\">&amp;</b>\n\xff"), "&lt;b class=\"x\">&amp;amp;&lt;/b>\n\xff");
}

}  // namespace
}  // namespace plimsoll
