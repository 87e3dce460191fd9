#include "plimsoll/model/training/spread_parameters.h"

#include <fmt/format.h>

#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/device.h"
#include "plimsoll/graph/program.h"
#include "plimsoll/model/training/step_plan.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/parked.h"

namespace plimsoll::internal {

using distributed::ShardStore;

SpreadParameters::SpreadParameters(distributed::Job& job, const DistributedLayout& layout)
    : job_(job), layout_(layout) {}

SpreadParameters::~SpreadParameters() { link_->store = nullptr; }

void SpreadParameters::take(std::size_t window_bytes) {
  const auto take = [&](Tensor& tensor, const char* op, Category category, std::size_t bytes) {
    if (!tensor.is_empty_handle() && tensor.nbytes() >= bytes) return;
    const Untracked making(category);
    tensor = Tensor();
    tensor = make_tensor({.op = op, .category = category}, {static_cast<std::int64_t>(bytes)}, u8,
                         device_of(layout_.changed()[0].value()));
  };
  take(shards_, "shards", Category::kParameters,
       ShardStore::own_bytes(layout_.space(), layout_.num_parameters(), job_.rank()));
  take(window_, "gathered", Category::kWorkspace, window_bytes);
}

Tensor SpreadParameters::placeholder(std::size_t part) const {
  const Variable& variable = layout_.changed()[part];
  const Origin origin{.op = "variable", .category = Category::kParameters};
  const auto load = [link = link_, part, name = variable.name()](void* to) {
    if (!link->store)
      throw FailedPrecondition(fmt::format(
          "variable \"{}\": parts of it were in other processes, and the job is over; load a checkpoint", name));
    link->store->begin_fetch(part, static_cast<std::byte*>(to));
    link->store->wait();
  };
  StorageRef storage = Parking::take_elsewhere(device_of(variable.value()), variable.nbytes(),
                                               block_label(origin, variable.shape(), variable.dtype()), load);
  return make_tensor_on(std::move(storage), 0, variable.shape(), variable.dtype(), origin);
}

void SpreadParameters::spread() {
  store_ = std::make_unique<ShardStore>(job_, layout_.space(), layout_.num_parameters());
  store_->set_memory(writable(shards_).bytes());
  link_->store = store_.get();
  put_back();
  store_->open();
}

void SpreadParameters::put_back() {
  const Untracked making(Category::kParameters);
  for (std::size_t i = 0; i < layout_.num_parameters(); ++i) {
    const Variable& variable = layout_.changed()[i];
    if (Parking::is_elsewhere(*variable.share_bytes())) continue;
    const ShardStore::Stretch& own = store_->own(i);
    if (own.bytes > 0) std::memcpy(own.memory, variable.value().view().bytes() + own.first, own.bytes);
    variable.assign(placeholder(i));
  }
}

void SpreadParameters::run(const StepPlan& plan, FunctionRef<void(const BorrowedVariables&)> f) {
  const std::vector<std::size_t> parts = layout_.spread_parts(plan);
  const auto begin_fetch = [&](std::uint32_t variable, std::byte* to) { store_->begin_fetch(parts[variable], to); };
  const auto wait = [&] { store_->wait(); };
  const auto serve = [&] { store_->serve(); };
  BorrowedVariables borrowed{{}, {writable(window_).bytes(), window_.nbytes()}, begin_fetch, wait, serve};
  for (const std::size_t part : parts) borrowed.is_borrowed.push_back(part != DistributedLayout::kNotSpread);
  f(borrowed);
}

std::vector<TensorView> SpreadParameters::own() const {
  std::vector<TensorView> views;
  const std::vector<Optimizer::Stretch>& stretches = layout_.stretches();
  for (std::size_t i = 0; i < stretches.size(); ++i)
    views.emplace_back(store_->own(layout_.part_of(i)).memory, std::size_t{0}, stretches[i].parameter.dtype(),
                       Shape({stretches[i].end - stretches[i].begin}));
  return views;
}

void SpreadParameters::read_all() {
  for (std::size_t i = 0; i < layout_.num_parameters(); ++i) layout_.changed()[i].share_bytes()->resident();
}

void SpreadParameters::close() {
  store_->close();
  link_->store = nullptr;
  store_.reset();
  shards_ = window_ = Tensor();
}

void SpreadParameters::give_up() noexcept {
  if (!are_spread() || !job_.is_open()) return;
  try {
    read_all();
  } catch (const std::exception& error) {
    log_message(LogLevel::warning,
                fmt::format("fit: parameters stay in other processes: {}; load a checkpoint", error.what()));
  }
  try {
    if (job_.is_open()) close();
  } catch (const std::exception&) {  // A process is gone, and the job is over.
  }
}

}  // namespace plimsoll::internal
