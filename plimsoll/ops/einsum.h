// einsum: sums of products of one or two tensors, by the letters of their axes.
//
//   einsum("ij,jk->ik", {a, b})          // A matrix product.
//   einsum("bhqd,bhkd->bhqk", {q, k})    // Batches of them; no operand is copied here.
//   einsum("ij->ji", {a}); einsum("ij->", {a}); einsum("i,j", {v, w})
//
// Without "->" the output has the letters that occur once, in alphabetical order, as in NumPy. Products that sum use
// matmul; axes are transposed only where matmul does not accept their order.
// Throws InvalidArgument for an equation that does not fit the operands, Unsupported for more than two operands, a
// letter twice in one operand (diagonals) and "...".
#pragma once

#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

PLIMSOLL_API Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands);

}  // namespace plimsoll
