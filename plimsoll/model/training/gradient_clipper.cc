#include "plimsoll/model/training/gradient_clipper.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "plimsoll/distributed/collectives.h"

namespace plimsoll::internal {
namespace {

template <class F>
void visit_elements(DType dtype, std::byte* bytes, std::size_t size, F&& f) {
  if (dtype == f64) {
    auto* const values = reinterpret_cast<double*>(bytes);
    for (std::size_t i = 0; i < size / sizeof(double); ++i) f(values[i]);
  } else {
    auto* const values = reinterpret_cast<float*>(bytes);
    for (std::size_t i = 0; i < size / sizeof(float); ++i) f(values[i]);
  }
}

}  // namespace

std::size_t GradientClipper::grain(const distributed::FlatSpace& space) {
  constexpr std::size_t kCells = 256, kLeast = 64;
  return std::max(kLeast, std::bit_floor(std::max<std::size_t>(space.end() / kCells, 1)));
}

std::vector<double> GradientClipper::squares(const distributed::PartAddresses& sum) {
  const std::size_t cell = space_.grain();
  std::vector<double> own;  // Of each part in each cell; 0 where they are another rank's.
  std::vector<std::size_t> parts;
  for (std::size_t begin = 0; begin < space_.end(); begin += cell) {
    const bool is_mine = space_.owner_of(begin) == job_.rank();
    space_.visit(begin, begin + cell, [&](std::size_t part, std::size_t first, std::size_t bytes) {
      if (part >= num_parameters_) return;
      double squares = 0;
      if (is_mine)
        visit_elements(space_.parts()[part].dtype, sum[part] + first, bytes,
                       [&](auto value) { squares += static_cast<double>(value) * static_cast<double>(value); });
      own.push_back(squares);
      parts.push_back(part);
    });
  }
  std::vector<double> all(own.size() * static_cast<std::size_t>(job_.size()));
  distributed::exchange(job_, std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)), "norms");
  std::vector<double> result(num_parameters_);
  for (std::size_t i = 0; i < own.size(); ++i) {
    double squares = 0;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(job_.size()); ++rank)
      squares += all[rank * own.size() + i];
    result[parts[i]] += squares;
  }
  return result;
}

void GradientClipper::scale(const distributed::PartAddresses& sum, const std::vector<double>& factors) {
  space_.visit_own(job_.rank(), [&](std::size_t part, std::size_t first, std::size_t bytes) {
    if (part >= num_parameters_ || factors[part] == 1) return;
    visit_elements(space_.parts()[part].dtype, sum[part] + first, bytes, [&](auto& value) {
      value = static_cast<std::remove_reference_t<decltype(value)>>(static_cast<double>(value) * factors[part]);
    });
  });
}

void GradientClipper::clip(const GradientClipping& clipping, const distributed::PartAddresses& sum) {
  const auto factor = [](double squares, double norm) { return norm / std::max(std::sqrt(squares), norm); };
  if (clipping.global_norm > 0) {
    double all = 0;
    for (const double each : squares(sum)) all += each;
    scale(sum, std::vector<double>(num_parameters_, factor(all, clipping.global_norm)));
  }
  if (clipping.norm > 0) {
    std::vector<double> factors = squares(sum);
    for (double& each : factors) each = factor(each, clipping.norm);
    scale(sum, factors);
  }
  if (clipping.value > 0)
    space_.visit_own(job_.rank(), [&](std::size_t part, std::size_t first, std::size_t bytes) {
      if (part >= num_parameters_) return;
      visit_elements(space_.parts()[part].dtype, sum[part] + first, bytes, [&](auto& value) {
        using T = std::remove_reference_t<decltype(value)>;
        value = std::clamp(value, static_cast<T>(-clipping.value), static_cast<T>(clipping.value));
      });
    });
}

}  // namespace plimsoll::internal
