#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/data/dataset.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/model/internal/require_tensors.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/on_device_of.h"

namespace plimsoll {
namespace {

template <class F>
Example each_of(const Example& all, F&& f) {
  Example result;
  for (const Tensor& tensor : all.inputs) result.inputs.push_back(f(tensor));
  for (const Tensor& tensor : all.targets) result.targets.push_back(f(tensor));
  if (!all.weights.is_empty_handle()) result.weights = f(all.weights);
  return result;
}
Example range_of(const Example& all, std::int64_t begin, std::int64_t end) {
  return each_of(all, [&](const Tensor& tensor) { return tensor.slice({begin}, {end - begin}); });
}
Example gather_of(const Example& all, const Tensor& rows) {
  return each_of(all, [&](const Tensor& tensor) { return plimsoll::gather(tensor, beside(rows, tensor)); });
}

class TensorRows final : public RowSource {
 public:
  explicit TensorRows(Example all) : all_(std::move(all)) {}
  std::size_t size() const noexcept override { return static_cast<std::size_t>(all_.x().shape()[0]); }
  Example range(std::int64_t begin, std::int64_t end) const override { return range_of(all_, begin, end); }
  Example gather(const Tensor& rows) const override { return gather_of(all_, rows); }

 private:
  const Example all_;
};

class LazyRows final : public RowSource {
 public:
  LazyRows(std::shared_ptr<const LazyTensors> tensors, std::size_t rows) : tensors_(std::move(tensors)), rows_(rows) {}
  std::size_t size() const noexcept override { return rows_; }
  Example range(std::int64_t begin, std::int64_t end) const override { return range_of(tensors_->get(), begin, end); }
  Example gather(const Tensor& rows) const override { return gather_of(tensors_->get(), rows); }
  std::size_t held_bytes() const noexcept override { return tensors_->bytes(); }

 private:
  const std::shared_ptr<const LazyTensors> tensors_;
  const std::size_t rows_;
};

class LazyWindows final : public RowSource {
 public:
  LazyWindows(std::shared_ptr<const LazyTensors> tensors, std::size_t count, const WindowOptions& options)
      : tensors_(std::move(tensors)), count_(count), options_(options) {}
  std::size_t size() const noexcept override { return count_; }
  Example range(std::int64_t begin, std::int64_t end) const override { return gather(arange(begin, end)); }
  Example gather(const Tensor& rows) const override {
    const Example& all = tensors_->get();
    const OnDeviceOf there(all.x());
    const std::int64_t count = rows.shape()[0];
    const Tensor first = (beside(rows, all.x()).cast(i64) * options_.stride).reshape({count, 1});
    Example windows{.inputs = {plimsoll::gather(all.x(), first + arange(std::int64_t{0}, options_.look_back))},
                    .targets = {}};
    if (all.targets.empty()) return windows;
    const Tensor ahead = first + arange(options_.look_back, options_.look_back + options_.horizon);
    windows.targets = {plimsoll::gather(all.y(), ahead).reshape({count, options_.horizon * all.y().shape()[1]})};
    return windows;
  }
  std::size_t held_bytes() const noexcept override { return tensors_->bytes(); }

 private:
  const std::shared_ptr<const LazyTensors> tensors_;
  const std::size_t count_;
  const WindowOptions options_;
};

class WindowRows final : public RowSource {
 public:
  WindowRows(const Tensor& series, const WindowOptions& options, std::int64_t count)
      : series_(series), options_(options), count_(count) {}
  std::size_t size() const noexcept override { return static_cast<std::size_t>(count_); }
  Example range(std::int64_t begin, std::int64_t end) const override {
    const OnDeviceOf there(series_);
    return gather(arange(begin, end));
  }
  Example gather(const Tensor& given) const override {
    const OnDeviceOf there(series_);
    const Tensor rows = beside(given, series_);
    const std::int64_t features = series_.shape()[1], count = rows.shape()[0];
    const Tensor first = (rows.cast(i64) * options_.stride).reshape({count, 1});
    const Tensor back = first + arange(std::int64_t{0}, options_.look_back);
    const Tensor ahead = first + arange(options_.look_back, options_.look_back + options_.horizon);
    return {.inputs = {plimsoll::gather(series_, back)},
            .targets = {plimsoll::gather(series_, ahead).reshape({count, options_.horizon * features})}};
  }

 private:
  const Tensor series_;
  const WindowOptions options_;
  const std::int64_t count_;
};

// Our own tensor on the caller's buffer: disposing of one does not dispose of the other, and no scope ends it.
Tensor own(const Tensor& tensor) {
  const Untracked outside;
  return tensor.reshape(tensor.shape());
}

}  // namespace

Dataset Dataset::from_tensors(const Tensor& x, const Tensor& y, const Tensor& weights) {
  return from_tensors(std::vector<Tensor>{x}, y.is_empty_handle() ? std::vector<Tensor>() : std::vector<Tensor>{y},
                      weights);
}

Dataset Dataset::from_tensors(const std::vector<Tensor>& inputs, const std::vector<Tensor>& targets,
                              const Tensor& weights) {
  if (inputs.empty()) throw InvalidArgument("from_tensors: there are no inputs; give at least one tensor");
  const auto check = [&](const Tensor& tensor, const char* what) {
    if (tensor.rank() == 0 || tensor.shape()[0] != inputs[0].shape()[0])
      throw InvalidArgument(fmt::format("from_tensors: {} have shape {}, the inputs {}; all need the same length", what,
                                        tensor.shape().to_string(), inputs[0].shape().to_string()));
  };
  require_tensors(inputs, "from_tensors", "x");
  require_tensors(targets, "from_tensors", "y");
  if (!weights.is_empty_handle()) require_tensors({weights}, "from_tensors", "weights");
  Example all;
  for (const Tensor& tensor : inputs) {
    check(tensor, "inputs");
    all.inputs.push_back(own(tensor));
  }
  for (const Tensor& tensor : targets) {
    check(tensor, "targets");
    all.targets.push_back(own(tensor));
  }
  if (!weights.is_empty_handle()) {
    check(weights, "weights");
    all.weights = own(weights);
  }
  const std::int64_t count = all.x().shape()[0];
  return Dataset(std::make_shared<RowsNode>(std::make_shared<TensorRows>(std::move(all)), 0, count));
}

const Example& LazyTensors::get() const {
  const std::lock_guard<std::mutex> hold(lock_);
  if (!loaded_) {
    const Untracked outside;
    loaded_ = load_();
  }
  return *loaded_;
}

std::shared_ptr<const DatasetNode> internal::make_lazy_rows(std::shared_ptr<const LazyTensors> tensors,
                                                            std::size_t rows) {
  return std::make_shared<RowsNode>(std::make_shared<LazyRows>(std::move(tensors), rows), 0,
                                    static_cast<std::int64_t>(rows));
}

std::shared_ptr<const DatasetNode> internal::make_lazy_windows(std::shared_ptr<const LazyTensors> tensors,
                                                               std::size_t rows, const WindowOptions& options) {
  const std::int64_t steps = static_cast<std::int64_t>(rows) - options.look_back - options.horizon;
  const std::int64_t count = steps < 0 ? 0 : steps / options.stride + 1;
  return std::make_shared<RowsNode>(
      std::make_shared<LazyWindows>(std::move(tensors), static_cast<std::size_t>(count), options), 0, count);
}

Dataset Dataset::from_loader(std::size_t rows, std::size_t bytes, std::function<Example()> load) {
  if (!load) throw InvalidArgument("from_loader: there is nothing to load with; give a function");
  const auto checked = [rows, load = std::move(load)] {
    Example all = load();
    visit_tensors(all, [&](const Tensor& tensor) {
      if (!tensor.is_empty_handle() && (tensor.rank() == 0 || static_cast<std::size_t>(tensor.shape()[0]) != rows))
        throw InvalidArgument(fmt::format("from_loader: a tensor of shape {} was loaded; its first axis needs {} rows",
                                          tensor.shape().to_string(), rows));
    });
    return all;
  };
  return Dataset(make_lazy_rows(std::make_shared<LazyTensors>(bytes, checked), rows));
}

Dataset timeseries_windows(const Tensor& series, const WindowOptions& options) {
  if (options.look_back < 1 || options.horizon < 1 || options.stride < 1)
    throw InvalidArgument(fmt::format("timeseries_windows: look_back {}, horizon {}, stride {}; give 1 or more",
                                      options.look_back, options.horizon, options.stride));
  if (series.rank() != 1 && series.rank() != 2)
    throw InvalidArgument(fmt::format("timeseries_windows: the series has shape {}; give [time, features] or [time]",
                                      series.shape().to_string()));
  const std::int64_t steps = series.shape()[0] - options.look_back - options.horizon;
  if (steps < 0)
    throw InvalidArgument(fmt::format("timeseries_windows: a series of {} steps has no window of {} and {} steps",
                                      series.shape()[0], options.look_back, options.horizon));
  const Untracked outside;
  const Tensor rows = series.reshape({series.shape()[0], series.rank() == 1 ? 1 : series.shape()[1]});
  const std::int64_t count = steps / options.stride + 1;
  return Dataset(std::make_shared<RowsNode>(std::make_shared<WindowRows>(rows, options, count), 0, count));
}

}  // namespace plimsoll
