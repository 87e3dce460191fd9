// Sparse tensors: only nonzero elements are stored, multiplied and trained.
#include <plimsoll/plimsoll.h>

#include <iostream>

#include "check.h"

namespace pl = plimsoll;

int main() {
  // Which nodes are linked, in any order; repeated links add up.
  const pl::Tensor links = pl::constant({{3, 0}, {0, 1}, {1, 2}, {0, 1}, {2, 0}});
  const pl::SparseTensor graph(links, pl::ones({5}), {1000, 1000}, {.duplicates = pl::Duplicates::sum});
  std::cout << graph << "\n";
  check(graph.num_entries() == 4 && graph.nbytes() < 1000, "a million elements in a few bytes");

  // A layer of a graph network: attention over the links, then the neighbours' features.
  const pl::SparseTensor attention = pl::sparse_softmax(graph).to_csr();
  const pl::Tensor features = pl::random_normal({1000, 16}, {.seed = 7});
  const pl::Tensor mixed = pl::sparse_matmul(attention, features);
  check(mixed.at<float>({0, 5}) == features.at<float>({1, 5}), "one link: the neighbour's own features");
  check(mixed.at<float>({999, 5}) == 0, "no link: nothing");

  // Only the entries and the dense side get gradients.
  pl::GradientTape tape;
  tape.watch(attention.values());
  tape.watch(features);
  const pl::Tensor loss = pl::square(pl::sparse_matmul(attention, features)).sum();
  const auto gradients = tape.gradient(loss, {attention.values(), features});
  check(gradients[0].size() == 4 && gradients[1].shape() == pl::Shape({1000, 16}), "one gradient for each entry");

  try {
    const pl::SparseTensor outside(pl::constant({{0, 1000}}), pl::ones({1}), {1000, 1000});
    check(false, "an entry outside the shape is refused");
  } catch (const pl::InvalidArgument& error) {
    std::cout << error.what() << "\n";
  }
  return 0;
}
