// Ragged batches: sequences of different lengths, padded only where a layer needs it.
#include <plimsoll/plimsoll.h>

#include <cmath>
#include <iostream>

#include "check.h"

namespace pl = plimsoll;

int main() {
  const pl::Tensor words = pl::random_normal({100, 4}, {.seed = 3});
  const pl::RaggedTensor ids =
      pl::RaggedTensor::from_rows({pl::constant({5, 17, 3}), pl::constant({8}), pl::constant({2, 2, 9, 40, 1})});
  std::cout << ids << "\n";

  const pl::RaggedTensor embedded = ids.with_values(pl::embedding_lookup(words, ids.values()));
  const pl::Tensor padded = embedded.to_padded();  // [3, 5, 4]
  const pl::Tensor mask = embedded.mask();         // [3, 5]
  check(padded.shape() == pl::Shape({3, 5, 4}), "padded to the longest");

  // The mean of each sequence, without its padding.
  const pl::Tensor lengths = embedded.row_lengths().cast(pl::f32).expand_dims(1);
  const pl::Tensor means = (padded * mask.cast(pl::f32).expand_dims(2)).sum({1}) / lengths;
  check(std::abs(means.at<float>({1, 0}) - words.at<float>({8, 0})) < 1e-6f, "the mean of one word is the word");

  const pl::RaggedTensor back = pl::RaggedTensor::from_padded(padded, embedded.row_lengths());
  check(back.values().to_vector<float>() == embedded.values().to_vector<float>(), "there and back");
  return 0;
}
