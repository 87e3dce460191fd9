#include "plimsoll/base/make_directories.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

TEST(MakeDirectories, MakesThoseAboveAndSaysWhatIsInTheWay) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("plimsoll_make_directories_" + std::to_string(getpid()));
  make_directories(folder / "a" / "b");
  make_directories(folder / "a" / "b");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a" / "b"));
  std::ofstream(folder / "file") << "in the way";
  try {
    make_directories(folder / "file" / "c");
    ADD_FAILURE() << "a folder in a file";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("file"), std::string::npos) << error.what();
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace plimsoll
