// For tests of files: a folder per test, real files where available, tensors of every dtype.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/io/checkpoint.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tensor_testing.h"

namespace plimsoll {

class FileFixture : public testing::Test {
 protected:
  explicit FileFixture(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string pattern = (parent / "plimsoll_io_XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }
  ~FileFixture() override { std::filesystem::remove_all(directory_); }

  static void put(const std::filesystem::path& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string get(const std::filesystem::path& path) { return read_file(path, 64_MiB); }
  std::vector<std::string> names() const {  // The files in the folder.
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }

  std::filesystem::path directory_;
};

// Bytes that differ from element to element, every pattern a valid value of the dtype.
inline Tensor patterned(const Shape& shape, DType dtype) {
  Tensor made = make_tensor({.op = "patterned", .category = Category::kInputs}, shape, dtype, current_device());
  const HostWrite to(made);
  for (std::size_t i = 0; i < made.nbytes(); ++i)
    to.bytes()[i] = static_cast<std::byte>(dtype == boolean ? i % 3 == 0 : i * 37 + 11);
  return made;
}

inline RestoreTarget target_of(const std::string& name, const Tensor& tensor) {
  return {.name = name, .destination = writable(tensor), .device = &device_of(tensor)};
}

inline void expect_same(const Tensor& actual, const Tensor& expected) {
  EXPECT_EQ(actual.dtype(), expected.dtype());
  ASSERT_EQ(actual.shape(), expected.shape());
  if (expected.nbytes() == 0) return;
  EXPECT_EQ(std::memcmp(HostRead(actual).bytes(), HostRead(expected).bytes(), expected.nbytes()), 0);
}

template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing of that kind thrown";
  return "";
}

inline constexpr DType kAllDTypes[] = {boolean, u8, i8, i16, i32, i64, f16, bf16, f32, f64};

}  // namespace plimsoll
