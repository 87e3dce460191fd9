#include "plimsoll/ops/einsum.h"

#include <gmock/gmock.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/refusal_testing.h"

namespace plimsoll {
namespace {

using ::testing::ElementsAre;

Tensor matrix() { return constant({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}); }
Tensor other() { return constant({{7.f, 8.f}, {9.f, 10.f}, {11.f, 12.f}}); }

// The definition: a sum over every combination of positions.
std::vector<float> by_definition(const std::string& a_letters, const Tensor& a, const std::string& b_letters,
                                 const Tensor& b, const std::string& output) {
  std::string letters = output;
  std::vector<std::int64_t> sizes, strides_a, strides_b;
  for (const std::string& more : {a_letters, b_letters})
    for (const char letter : more)
      if (letters.find(letter) == std::string::npos) letters += letter;
  const auto stride = [](const std::string& of, const Tensor& x, char letter) -> std::int64_t {
    const std::size_t axis = of.find(letter);
    return axis == std::string::npos ? 0 : row_major_strides(x.shape())[axis];
  };
  std::int64_t total = 1, kept = 1;
  for (const char letter : letters) {
    const std::size_t axis = a_letters.find(letter);
    sizes.push_back(axis == std::string::npos ? b.shape()[b_letters.find(letter)] : a.shape()[axis]);
    strides_a.push_back(stride(a_letters, a, letter));
    strides_b.push_back(stride(b_letters, b, letter));
    total *= sizes.back();
    if (output.find(letter) != std::string::npos) kept *= sizes.back();
  }
  const std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>();
  std::vector<float> result(static_cast<std::size_t>(kept));
  for (std::int64_t position = 0; position < total; ++position) {
    std::int64_t rest = position, at_a = 0, at_b = 0;
    for (std::size_t i = letters.size(); i-- > 0; rest /= sizes[i]) {
      at_a += rest % sizes[i] * strides_a[i];
      at_b += rest % sizes[i] * strides_b[i];
    }
    result[static_cast<std::size_t>(position / (total / kept))] +=
        x[static_cast<std::size_t>(at_a)] * y[static_cast<std::size_t>(at_b)];
  }
  return result;
}

TEST(Einsum, TransposesAndSumsOne) {
  EXPECT_THAT(einsum("ij->ji", {matrix()}).to_vector<float>(), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(einsum("ij->j", {matrix()}).to_vector<float>(), ElementsAre(5, 7, 9));
  EXPECT_THAT(einsum("ij -> i", {matrix()}).to_vector<float>(), ElementsAre(6, 15));
  EXPECT_EQ(einsum("ij->", {matrix()}).item<float>(), 21);
  EXPECT_EQ(einsum("ji", {matrix()}).shape(), Shape({3, 2}));  // Implied: in alphabetical order.
  EXPECT_EQ(einsum("abc->ca", {zeros({2, 3, 4})}).shape(), Shape({4, 2}));
}

TEST(Einsum, MultipliesMatrices) {
  EXPECT_THAT(einsum("ij,jk->ik", {matrix(), other()}).to_vector<float>(), ElementsAre(58, 64, 139, 154));
  EXPECT_THAT(einsum("ij,jk", {matrix(), other()}).to_vector<float>(), ElementsAre(58, 64, 139, 154));
  EXPECT_THAT(einsum("ij,jk->ki", {matrix(), other()}).to_vector<float>(), ElementsAre(58, 139, 64, 154));
  EXPECT_THAT(einsum("ij,kj->ik", {matrix(), matrix()}).to_vector<float>(), ElementsAre(14, 32, 32, 77));
  EXPECT_EQ(einsum("ij,ij->", {matrix(), matrix()}).item<float>(), 91);
}

TEST(Einsum, MultipliesVectors) {
  const Tensor v = constant({1.f, 2.f, 3.f}), w = constant({4.f, 5.f});
  EXPECT_EQ(einsum("i,i->", {v, v}).item<float>(), 14);
  EXPECT_THAT(einsum("i,i->i", {v, v}).to_vector<float>(), ElementsAre(1, 4, 9));
  EXPECT_THAT(einsum("i,j->ij", {v, w}).to_vector<float>(), ElementsAre(4, 5, 8, 10, 12, 15));
  EXPECT_THAT(einsum("i,j->ji", {v, w}).to_vector<float>(), ElementsAre(4, 8, 12, 5, 10, 15));
  EXPECT_THAT(einsum("i,j->i", {v, w}).to_vector<float>(), ElementsAre(9, 18, 27));
  EXPECT_THAT(einsum("i,->i", {v, constant(2.f)}).to_vector<float>(), ElementsAre(2, 4, 6));
  EXPECT_THAT(einsum("i,i->i", {constant({2, 3}), constant({4, 5})}).to_vector<int>(), ElementsAre(8, 15));
}

TEST(Einsum, FollowsTheDefinition) {
  const struct {
    std::string a, b, output;
    Shape a_shape, b_shape;
  } cases[] = {{"bhqd", "bhkd", "bhqk", {2, 3, 4, 5}, {2, 3, 6, 5}},
               {"bqhd", "bkhd", "bhqk", {2, 4, 3, 5}, {2, 6, 3, 5}},
               {"bhqk", "bkhd", "bqhd", {2, 3, 4, 6}, {2, 6, 3, 5}},
               {"abc", "cde", "abde", {2, 3, 4}, {4, 2, 5}},
               {"abc", "bcd", "ad", {2, 3, 4}, {3, 4, 2}},
               {"abc", "acb", "a", {2, 3, 4}, {2, 4, 3}},
               {"abc", "ad", "dca", {2, 3, 4}, {2, 5}},
               {"xab", "bxc", "cxa", {2, 3, 4}, {4, 2, 3}},
               {"ab", "cd", "dbca", {2, 3}, {4, 2}},
               {"ba", "bc", "ac", {3, 2}, {3, 4}}};
  for (const auto& c : cases) {
    const Tensor a = arange(0.f, static_cast<float>(c.a_shape.size())).reshape(c.a_shape);
    const Tensor b = arange(1.f, static_cast<float>(c.b_shape.size() + 1)).reshape(c.b_shape);
    const std::string equation = c.a + "," + c.b + "->" + c.output;
    EXPECT_EQ(einsum(equation, {a, b}).to_vector<float>(), by_definition(c.a, a, c.b, b, c.output)) << equation;
  }
}

TEST(Einsum, OfNothingIsNothingOrZeros) {
  EXPECT_EQ(einsum("ij,jk->ik", {zeros({0, 3}), zeros({3, 2})}).shape(), Shape({0, 2}));
  EXPECT_THAT(einsum("ij,jk->ik", {zeros({1, 0}), zeros({0, 2})}).to_vector<float>(), ElementsAre(0, 0));
}

TEST(Einsum, RefusesOperandsThatDoNotFit) {
  EXPECT_EQ(refusal<InvalidArgument>([] {
              einsum("ij,jk->ik", {matrix(), zeros({4, 5})});
            }),
            "einsum: \"ij,jk->ik\": j is 3 in operand 0 [2, 3] and 4 in operand 1 [4, 5]");
  EXPECT_EQ(refusal<InvalidArgument>([] { einsum("ij,jk->ik", {matrix()}); }),
            "einsum: \"ij,jk->ik\": names 2 operands, 1 are given");
  EXPECT_EQ(refusal<InvalidArgument>([] { einsum("ijk->ik", {matrix()}); }),
            "einsum: \"ijk->ik\": \"ijk\" has 3 letters, operand 0 is [2, 3] with 2 axes");
  EXPECT_THROW(einsum("ij", {Tensor()}), Error);
  EXPECT_THROW(einsum("ij,jk", {matrix(), other().cast(f64)}), InvalidArgument);
}

TEST(Einsum, RefusesEquationsThatAreNone) {
  EXPECT_EQ(refusal<InvalidArgument>([] { einsum("ij->ii", {matrix()}); }),
            "einsum: \"ij->ii\": i is twice in the output; give it once");
  EXPECT_EQ(refusal<InvalidArgument>([] { einsum("ij->k", {matrix()}); }),
            "einsum: \"ij->k\": k of the output is in no operand");
  EXPECT_EQ(refusal<InvalidArgument>([] { einsum("i1->i", {matrix()}); }),
            "einsum: \"i1->i\": '1' is not a letter; write operands as \"ij,jk->ik\"");
}

TEST(Einsum, SaysWhatItDoesNotOffer) {
  EXPECT_EQ(refusal<Unsupported>([] {
              einsum("ii->i", {zeros({2, 2})});
            }),
            "einsum: \"ii->i\": i is twice in one operand; diagonals are not offered");
  EXPECT_EQ(refusal<Unsupported>([] { einsum("...i->...", {matrix()}); }),
            "einsum: \"...i->...\": \"...\" is not offered; give every axis a letter");
  EXPECT_EQ(refusal<Unsupported>([] {
              einsum("i,i,i->i", {zeros({2}), zeros({2}), zeros({2})});
            }),
            "einsum: \"i,i,i->i\": 3 operands; one or two are offered, so take it in steps");
}

}  // namespace
}  // namespace plimsoll
