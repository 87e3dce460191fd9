// Batch normalization on devices with kernels of their own. Rows are cut into pieces whose sums fit in the scratch.
#include <algorithm>

#include "plimsoll/ops/internal/batch_norm_ops.h"
#include "plimsoll/ops/launch.h"

namespace plimsoll::internal {
namespace {

struct Extent {
  std::int64_t rows, channels, pieces = 1, piece_rows = 1;

  // Two sums per piece and channel, and as many factors per channel.
  Extent(const Shape& x, std::size_t scratch_bytes) noexcept : channels(x.back()) {
    rows = channels == 0 ? 0 : static_cast<std::int64_t>(x.size()) / channels;
    const auto fit =
        static_cast<std::int64_t>(scratch_bytes / (2 * sizeof(float))) / std::max<std::int64_t>(channels, 1);
    pieces = std::clamp<std::int64_t>(std::min(fit - 1, rows / 64), 1, 32);
    piece_rows = std::max<std::int64_t>(1, (rows + pieces - 1) / pieces);
    pieces = std::max<std::int64_t>(1, (rows + piece_rows - 1) / piece_rows);
  }
  std::size_t blocks() const noexcept { return static_cast<std::size_t>((channels + 15) / 16); }
  std::size_t row_groups() const noexcept { return static_cast<std::size_t>((rows + 7) / 8); }
  std::size_t parts_bytes() const noexcept { return static_cast<std::size_t>(2 * pieces * channels) * sizeof(float); }
  bool fits(std::size_t scratch_bytes) const noexcept {
    return parts_bytes() + static_cast<std::size_t>(2 * channels) * sizeof(float) <= scratch_bytes;
  }
};

const void* bytes_or_null(const ConstTensorView* view) noexcept { return view ? view->bytes() : nullptr; }

bool apply(KernelQueue& queue, const Extent& extent, const ConstTensorView& x, const void* mean, const void* deviation,
           const BatchNormParameters& parameters, bool relu, const double* epsilon, const TensorView& y) noexcept {
  KernelCall call("batch_norm_apply");
  call.out(y.bytes()).in(x.bytes()).in(mean).in(deviation).in(bytes_or_null(parameters.gamma));
  call.in(bytes_or_null(parameters.beta)).integer(extent.rows).integer(extent.channels);
  call.integer(parameters.gamma ? 1 : 0).integer(parameters.beta ? 1 : 0).integer(relu ? 1 : 0);
  call.integer(epsilon ? 1 : 0).number(epsilon ? *epsilon : 0);
  return queue.run(call.items(extent.blocks(), extent.row_groups()));
}

}  // namespace

bool BatchNormTrain::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const ConstTensorView& x = run.in[0];
  const Extent extent(x.shape(), run.scratch.size());
  if (x.dtype() != f32 || x.size() == 0 || !extent.fits(run.scratch.size())) return false;
  KernelCall moments("batch_norm_moments");
  moments.out(run.scratch.data()).in(x.bytes()).integer(extent.rows).integer(extent.channels);
  moments.integer(extent.piece_rows).items(extent.blocks(), static_cast<std::size_t>(extent.pieces));
  KernelCall join("batch_norm_join");
  join.out(run.out[1].bytes()).out(run.out[2].bytes()).out(run.out[3].bytes()).in(run.scratch.data());
  join.integer(extent.rows).integer(extent.channels).integer(extent.piece_rows).integer(extent.pieces);
  join.number(epsilon_).items(static_cast<std::size_t>(extent.channels));
  return queue.run(moments) && queue.run(join) &&
         apply(queue, extent, x, run.out[1].bytes(), run.out[3].bytes(), parameters_of(run, inputs_), relu_, nullptr,
               run.out[0]);
}

bool RepeatedBatchNorm::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const ConstTensorView& x = run.in[0];
  return x.dtype() == f32 && apply(queue, Extent(x.shape(), run.scratch.size()), x, run.in[1].bytes(),
                                   run.in[2].bytes(), parameters_of(run, inputs_), relu_, nullptr, run.out[0]);
}

bool BatchNormInfer::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const ConstTensorView& x = run.in[0];
  return x.dtype() == f32 && apply(queue, Extent(x.shape(), run.scratch.size()), x, run.in[1].bytes(),
                                   run.in[2].bytes(), parameters_of(run, inputs_), relu_, &epsilon_, run.out[0]);
}

bool BatchNormBack::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const ConstTensorView &x = run.in[0], &dy = run.in[1], &mean = run.in[2], &rstd = run.in[3];
  const Extent extent(x.shape(), run.scratch.size());
  if (x.dtype() != f32 || x.size() == 0 || !extent.fits(run.scratch.size())) return false;
  const BatchNormParameters parameters = parameters_of(run, inputs_);
  const void *const gamma = bytes_or_null(parameters.gamma), *const beta = bytes_or_null(parameters.beta);
  std::byte* const factors = run.scratch.data() + extent.parts_bytes();
  KernelCall slopes("batch_norm_slopes");
  slopes.out(run.scratch.data()).in(x.bytes()).in(dy.bytes()).in(mean.bytes()).in(rstd.bytes()).in(gamma).in(beta);
  slopes.integer(extent.rows).integer(extent.channels).integer(extent.piece_rows).integer(gamma ? 1 : 0);
  slopes.integer(beta ? 1 : 0).integer(relu_ ? 1 : 0);
  slopes.items(extent.blocks(), static_cast<std::size_t>(extent.pieces));
  KernelCall join("batch_norm_join_slopes");
  join.out(run.out[1].bytes()).out(run.out[2].bytes()).out(factors).in(run.scratch.data()).in(rstd.bytes()).in(gamma);
  join.integer(extent.rows).integer(extent.channels).integer(extent.pieces).integer(gamma ? 1 : 0);
  join.items(static_cast<std::size_t>(extent.channels));
  KernelCall back("batch_norm_back");
  back.out(run.out[0].bytes()).in(x.bytes()).in(dy.bytes()).in(mean.bytes()).in(rstd.bytes()).in(gamma).in(beta);
  back.in(factors).integer(extent.rows).integer(extent.channels).integer(gamma ? 1 : 0).integer(beta ? 1 : 0);
  back.integer(relu_ ? 1 : 0).items(extent.blocks(), extent.row_groups());
  return queue.run(slopes) && queue.run(join) && queue.run(back);
}

}  // namespace plimsoll::internal
