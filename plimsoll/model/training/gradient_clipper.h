// GradientClipper: clips gradients that are distributed over the processes of a job: each clips its own part, using
// norms of the whole.
//
//   const FlatSpace space(parts, job.size(), {.grain = GradientClipper::grain(FlatSpace(parts, job.size()))});
//   GradientClipper(job, space, parts.size()).clip(clipping, sum);
//
// Squares are added in double, within cells of the space's grain, which do not depend on the number of ranks, and then
// over the cells in order: so the bits do not depend on the ranks either. Requires that parts are cut between cells.
#pragma once

#include <cstddef>
#include <vector>

#include "plimsoll/distributed/tensor_exchange.h"
#include "plimsoll/model/training/step.h"

namespace plimsoll::internal {

class GradientClipper {
 public:
  // The first `num_parameters` parts of the space are gradients.
  GradientClipper(distributed::Job& job, const distributed::FlatSpace& space, std::size_t num_parameters)
      : job_(job), space_(space), num_parameters_(num_parameters) {}

  static std::size_t grain(const distributed::FlatSpace& space);  // Of about 256 cells: a power of two.
  void clip(const GradientClipping& clipping, const distributed::PartAddresses& sum);

 private:
  std::vector<double> squares(const distributed::PartAddresses& sum);  // Of each part.
  void scale(const distributed::PartAddresses& sum, const std::vector<double>& factors);

  distributed::Job& job_;
  const distributed::FlatSpace& space_;
  const std::size_t num_parameters_;
};

}  // namespace plimsoll::internal
