#include "plimsoll/cli/table.h"

#include <gtest/gtest.h>

namespace plimsoll::internal {
namespace {

Table sample() {
  Table table({"trace", "ns", ""});
  table.add({"resnet18", "21.5", "fits"});
  table.add({"é", "7"});
  return table;
}

TEST(Table, AlignsColumnsByCharacters) {
  EXPECT_EQ(sample().text(),
            "trace       ns\n"
            "resnet18  21.5  fits\n"
            "é            7\n");
}

TEST(Table, WritesMarkdown) {
  EXPECT_EQ(sample().markdown(),
            "| trace    |   ns |      |\n"
            "|----------|-----:|------|\n"
            "| resnet18 | 21.5 | fits |\n"
            "| é        |    7 |      |\n");
}

TEST(Table, DropsCellsBeyondItsHeader) {
  Table table({"a"});
  table.add({"1", "2"});
  EXPECT_EQ(table.text(), "a\n1\n");
}

}  // namespace
}  // namespace plimsoll::internal
