#include "plimsoll/base/json.h"

#include <gtest/gtest.h>

namespace plimsoll::internal {
namespace {

TEST(Json, TextIsReadAndWrittenBack) {
  EXPECT_EQ(json_text(parse_json(R"({"b": [1, 2.5], "a": null})")), R"({"a":null,"b":[1,2.5]})");
  EXPECT_EQ(json_text(parse_ordered_json(R"({"b": 1, "a": 2})")), R"({"b":1,"a":2})");
}

TEST(Json, BadTextThrowsOrIsDiscarded) {
  EXPECT_THROW(parse_json("{"), nlohmann::json::parse_error);
  EXPECT_TRUE(try_parse_json("{").is_discarded());
  EXPECT_FALSE(try_parse_json("{}").is_discarded());
}

TEST(Json, BytesThatAreNotUtf8AreReplacedOrRefused) {
  EXPECT_EQ(json_text(nlohmann::json("a\xff")), "\"a\xef\xbf\xbd\"");
  EXPECT_THROW(strict_json_text(nlohmann::json("a\xff")), nlohmann::json::type_error);
}

}  // namespace
}  // namespace plimsoll::internal
