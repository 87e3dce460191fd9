// matmul_pack: packs a panel of a matrix product, converting half types to f32 on the way.
#pragma once

#include <cstddef>

#include "plimsoll/base/dtype.h"
#include "plimsoll/kernels/internal/matmul_loops.h"

namespace plimsoll::internal {

// Like MatmulLoops::pack_rows and pack_columns, one of which is `pack`; x has dtype `source`, the panel holds `most`
// vectors.
void matmul_pack(decltype(MatmulLoops::pack_rows) pack, DType source, const std::byte* x, std::int64_t count,
                 std::int64_t k, std::int64_t along, std::int64_t deep, std::int64_t most, std::byte* to) noexcept;

}  // namespace plimsoll::internal
