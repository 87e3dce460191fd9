#include "plimsoll/model/training/distributed_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "plimsoll/base/crc32c.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/device.h"
#include "plimsoll/distributed/collectives.h"
#include "plimsoll/distributed/unavailable.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/training/batch_slices.h"
#include "plimsoll/model/training/gradient_clipper.h"
#include "plimsoll/model/training/result_exchange.h"
#include "plimsoll/model/training/step_budget.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {
namespace {

using distributed::FlatSpace;
using distributed::PartAddresses;
using distributed::Piece;
using distributed::SliceTree;
using distributed::TensorExchange;

// Seeds that a layer may take in a slice; where it takes more, slices share some.
constexpr std::uint64_t kDrawsOfSlice = 64;

std::size_t slices_of(const distributed::TrainingOptions& options) {
  const auto ranks = static_cast<std::size_t>(options.job->size());
  if (options.slices > 0 && options.slices < ranks)
    throw InvalidArgument(fmt::format("fit: {} slices for {} ranks; give as many slices as there are ranks, or more",
                                      options.slices, ranks));
  return options.slices > 0 ? options.slices : ranks;
}

PartAddresses addresses_of(std::span<const Tensor> values) {
  PartAddresses addresses;
  for (const Tensor& value : values) addresses.push_back(writable(value).bytes());
  return addresses;
}

}  // namespace

DistributedTraining::DistributedTraining(Network& network, const distributed::TrainingOptions& options,
                                         StepBudget& memory)
    : network_(network),
      job_(*options.job),
      slices_(slices_of(options)),
      shards_((options.shard_optimizer || options.shard_parameters) && job_.size() > 1),
      shards_parameters_(options.shard_parameters && job_.size() > 1),
      memory_(memory) {}
DistributedTraining::~DistributedTraining() = default;

void DistributedTraining::agree(std::exception_ptr error, std::uint64_t signature, const char* what) {
  try {
    const distributed::Verdict verdict = distributed::agree(job_, {.error = std::move(error),
                                                                   .wants_stop = network_.training.stop,
                                                                   .signature = signature,
                                                                   .what = what,
                                                                   .bytes_used = memory_.used_bytes(),
                                                                   .bytes_peak = memory_.peak_bytes()});
    if (verdict.stop && !stop_ && !network_.training.stop)
      log_message(LogLevel::warning, fmt::format("fit: {} was asked to stop in {}; all ranks stop",
                                                 job_.describe(verdict.stopped_by), job_.activity()));
    stop_ |= verdict.stop;
    bytes_used_ = verdict.bytes_used;
  } catch (...) {
    told_ = true;
    throw;
  }
}

void DistributedTraining::agree_to_go_on() { agree(nullptr, 0, "the epoch"); }

void DistributedTraining::tell(std::exception_ptr error) noexcept {
  if (!told_ && job_.is_open()) try {
      agree(std::move(error), 0, "the step");
    } catch (...) {  // The caller has it.
    }
  if (spread_) spread_->give_up();
}

Dataset DistributedTraining::agreed(const Dataset& data, bool parts) {
  if (!data.is_set()) return data;
  std::uint64_t seed = 0;
  if (job_.rank() == 0) {
    const RandomDraw drawn = draw_random({}, 4);
    seed = seed_at(drawn.key, drawn.offset);
  }
  distributed::broadcast(job_, std::as_writable_bytes(std::span(&seed, 1)), 0, "the order of examples");
  const auto seeded = data.node()->seeded(seed);
  const auto& node = seeded ? seeded : data.node();
  const auto own_rows = [slices = slices_, ranks = job_.size(), rank = job_.rank()](std::size_t examples) {
    return rows_of_rank(examples, slices, ranks, rank);
  };
  const auto part = parts ? node->part_of_batches(own_rows) : nullptr;
  return Dataset(part ? part : node);
}

bool DistributedTraining::load(FunctionRef<bool()> next, const Example& batch) {
  job_.set_activity(fmt::format("step {}", network_.training.optimizer->step() + 1));
  bool is_there = false;
  std::exception_ptr error;
  try {
    if (spread_ && spread_->are_spread()) spread_->put_back();  // What callbacks have read.
    is_there = next();
  } catch (...) {
    error = std::current_exception();
  }
  agree(error, is_there ? form_hash(batch) : 0, "the batch");
  return is_there;
}

// All processes start with the weights and seeds of the first rank. Their optimizers must already agree.
void DistributedTraining::begin(const Example& batch) {
  std::exception_ptr error;
  std::uint64_t state = 0;
  const Optimizer& optimizer = *network_.training.optimizer;
  try {
    require_batch(network_, StepKind::kGradients, batch, "fit");
    if (shards_) network_.training.plans.clear();  // They may hold state that is about to move elsewhere.
    std::uint32_t crc = 0;
    const auto add = [&](const void* bytes, std::size_t size) {
      crc = crc32c({static_cast<const std::byte*>(bytes), size}, crc);
    };
    const std::int64_t step = optimizer.step();
    const double rate = optimizer.learning_rate();
    add(&step, sizeof(step));
    add(&rate, sizeof(rate));
    for (const LayerBase::Weight& weight : network_.unique_weights()) {
      if (!device_of(weight.variable.value()).is_host())
        throw Unsupported(fmt::format("fit: variable \"{}\" is on {}; processes of a job train on the host's memory",
                                      weight.variable.name(), weight.variable.device()));
      weight.variable.writable_value();  // Copies, where necessary, before anything is sent.
      add(weight.variable.name().data(), weight.variable.name().size());
      for (const Optimizer::Slot& slot : optimizer.slots(weight.variable))
        if (!optimizer.is_spread()) add(slot.value.view().bytes(), slot.value.nbytes());
    }
    state = crc;
  } catch (...) {
    error = std::current_exception();
  }
  agree(error, state, "the model or the optimizer's state");
  broadcast_weights();
  begun_ = true;
}

void DistributedTraining::broadcast_weights() {
  for (const LayerBase::Weight& weight : network_.unique_weights()) {
    const TensorView value = weight.variable.writable_value();
    distributed::broadcast(job_, {value.bytes(), value.nbytes()}, 0, "weights");
  }
  std::vector<std::uint64_t> seeds;
  network_.visit_layers([&](LayerBase& layer) {
    seeds.push_back(layer.own_seed());
    seeds.push_back(layer.draws());
  });
  distributed::broadcast(job_, std::as_writable_bytes(std::span(seeds)), 0, "seeds");
  std::size_t i = 0;
  network_.visit_layers([&](LayerBase& layer) {
    layer.set_own_seed(seeds[i]);
    draws_.emplace_back(&layer, seeds[i + 1]);
    i += 2;
  });
}

// Draws are numbered by slices over the whole fit.
void DistributedTraining::set_draws(std::uint64_t number) {
  for (const auto& [layer, first] : draws_) layer->set_draws(first + number * kDrawsOfSlice);
}

void DistributedTraining::set_layout(const StepPlan& plan) {
  if (layout_) return;
  constrained_ = plan.constrained();
  layout_ = std::make_unique<DistributedLayout>(
      plan, network_.training.clipping,
      RankOfJob{.ranks = job_.size(), .rank = job_.rank(), .shards = shards_, .shards_parameters = shards_parameters_});
}

void DistributedTraining::admit(const std::shared_ptr<StepPlan>& plan, const Example& batch, const DatasetNode& data) {
  set_layout(*plan);
  const SliceTree tree(slices_, job_.size());
  const BesideStep beside = layout_->beside(*plan, tree, *network_.training.optimizer);
  try {
    memory_.admit(plan, batch, data, beside);
  } catch (const OutOfMemory& error) {
    if (shards_parameters_ || job_.size() == 1 || !plan->has_program() || !plan->constrained().empty()) throw;
    const DistributedLayout spread(
        *plan, network_.training.clipping,
        {.ranks = job_.size(), .rank = job_.rank(), .shards = true, .shards_parameters = true});
    const std::size_t saved = beside.all() - spread.beside(*plan, tree, *network_.training.optimizer).all();
    if (saved > error.smallest_sufficient_limit()) throw;  // It would take more.
    const std::size_t sufficient = error.smallest_sufficient_limit() - saved;
    throw OutOfMemory(
        {.what = fmt::format("{}, or spread the parameters over the ranks (shard_parameters), which needs {} bytes",
                             error.what(), sufficient),
         .requested = error.requested(),
         .limit = error.limit(),
         .in_use = error.in_use(),
         .smallest_sufficient_limit = error.smallest_sufficient_limit(),
         .holders = error.holders(),
         .tried = error.tried()});
  }
}

// Each rank keeps its part of the parameters and frees the rest, once all have memory for the step.
void DistributedTraining::spread_parameters(const Example& batch, const DatasetNode& data, const SliceTree& tree) {
  std::exception_ptr error;
  try {
    const std::size_t first = tree.begin(job_.rank());
    const RowRange range = first < tree.end(job_.rank()) ? slice_rows(batch, tree, first) : RowRange{0, 1};
    const auto plan = network_.training.plans.get(StepKind::kGradients, rows_of(batch, range), "fit");
    if (!plan->has_program())
      throw Unsupported("fit: shard_parameters needs steps that run by a plan; leave it or run_eagerly out");
    DistributedLayout::require_no_constraints(*plan, "fit");
    admit(plan, batch, data);
    if (!spread_) spread_ = std::make_unique<SpreadParameters>(job_, *layout_);
    const BudgetScope charged(memory_.stepping());
    spread_->take(layout_->window_bytes(*plan));
  } catch (...) {
    error = std::current_exception();
  }
  agree(error, error ? 0 : layout_->space().end(), "the model");
  spread_->spread();
  memory_.note_freed();
}

void DistributedTraining::gather_parameters() {
  if (!spread_ || !spread_->are_spread()) return;
  std::exception_ptr error;
  try {
    const BudgetScope charged(memory_.stepping());
    spread_->read_all();
  } catch (const Unavailable&) {
    told_ = true;
    throw;
  } catch (...) {
    error = std::current_exception();
  }
  agree(error, 0, "the end of the epoch");
  spread_->close();
}

void DistributedTraining::compute_slice(const Example& batch, const RowRange& range, const DatasetNode& data,
                                        std::vector<Tensor>& out, const StepPlan::Watch* watch) {
  const Example rows = rows_of(batch, range);
  const auto plan = network_.training.plans.get(StepKind::kGradients, rows, "fit");
  const double scale = static_cast<double>(range.end - range.begin) / static_cast<double>(examples_in(batch));
  if (scale_value_ != scale) scale_ = Tensor();  // Before the plan gets what is left.
  if (plan->has_program()) admit(plan, batch, data);
  const BudgetScope charged(memory_.stepping());
  const Untracked gradients(Category::kGradients);
  if (scale_.is_empty_handle()) {
    scale_ = make_tensor({.op = "scale", .category = Category::kInputs}, Shape(std::vector<std::int64_t>()), f32,
                         device_of(batch.x()));
    *writable(scale_).data<float>() = static_cast<float>(scale);
    scale_value_ = scale;
  }
  if (shards_parameters_) {
    if (!plan->has_program()) throw Unsupported("fit: shard_parameters needs slices that run by a plan; leave it out");
    spread_->take(layout_->window_bytes(*plan));
    spread_->run(*plan, [&](const BorrowedVariables& borrowed) {
      results_.push_back(plan->gradients(rows, scale_, out, memory_.recomputing(), watch, &borrowed));
    });
  } else {
    results_.push_back(plan->gradients(rows, scale_, out, memory_.recomputing(), watch));
  }
  set_layout(*plan);
}

// Rounds take a tag in the order of the calls, so all ranks begin at the same place: before the slices are computed,
// unless this rank does not know yet what is exchanged.
void DistributedTraining::begin_exchange(const SliceTree& tree) {
  const std::span<std::byte> room =
      buckets_.is_empty_handle() ? std::span<std::byte>() : std::span(writable(buckets_).bytes(), buckets_.nbytes());
  exchange_.emplace(job_, layout_->space(), room);
  exchange_->begin_reduce(tree, {}, {});
  is_merged_.assign(layout_->changed().size(), false);
  may_hurry_.clear();
}

// Of the last slice of this rank, those that are known: adds them to the sums that waited for them, and sends what is
// complete.
void DistributedTraining::send_early(std::span<const Tensor> values, std::span<const std::size_t> ended) {
  std::vector<Values>& waiting = sums_->values();
  if (may_hurry_.empty()) {
    const auto storage_of = [](const Tensor& value) { return value.record()->storage.load(std::memory_order_relaxed); };
    for (const Tensor& value : values) {
      const auto shares = [&](const Tensor& other) { return storage_of(other) == storage_of(value); };
      const bool is_view = value.record()->offset != 0 || value.record()->has(TensorRecord::kView);
      may_hurry_.push_back(!is_view && std::count_if(values.begin(), values.end(), shares) == 1);
    }
    std::vector<PartAddresses> pieces;
    for (std::size_t i = 0; i < num_pieces_; ++i)
      pieces.push_back(i < waiting.size() ? addresses_of(waiting[i]) : addresses_of(values));
    exchange_->set_pieces(pieces, pieces[0]);
  }
  for (const std::size_t part : ended) {
    if (!may_hurry_[part]) continue;
    const std::byte* right = values[part].view().bytes();
    for (std::size_t left = waiting.size(); left >= num_pieces_ && left > 0; --left) {
      std::byte* const sum = writable(waiting[left - 1][part]).bytes();
      add_part(layout_->space().parts()[part], sum, right);
      right = sum;
    }
    is_merged_[part] = true;
    exchange_->set_ready(part);
  }
  exchange_->advance();
}

void DistributedTraining::compute(const Example& batch, const DatasetNode& data, const SliceTree& tree) {
  trace_step(static_cast<std::uint64_t>(network_.training.optimizer->step()));
  const int rank = job_.rank();
  num_pieces_ = tree.pieces(rank).size();
  const auto hurry = [&](std::span<const Tensor> values, std::span<const std::size_t> ended) {
    send_early(values, ended);
  };
  const StepPlan::Watch watch(hurry);
  for (std::size_t slice = tree.begin(rank); slice < tree.end(rank); ++slice) {
    Values values;
    set_draws(steps_ * slices_ + slice);
    const bool is_last = slice + 1 == tree.end(rank);
    compute_slice(batch, slice_rows(batch, tree, slice), data, values,
                  is_last && exchange_ && job_.size() > 1 ? &watch : nullptr);
    is_merged_.resize(layout_->changed().size());
    sums_->add({slice, slice + 1, rank}, std::move(values), [&](Values& left, Values& right) {
      for (std::size_t part = 0; part < left.size(); ++part)
        if (!is_last || !is_merged_[part])
          add_part(layout_->space().parts()[part], writable(left[part]).bytes(), right[part].view().bytes());
      right.clear();
    });
  }
  if (tree.begin(rank) < tree.end(rank)) return;
  Values unused;  // Without slices: to know what changes.
  if (!layout_) compute_slice(batch, {0, 1}, data, unused);
  results_.clear();
}

// Acquires everything that the update needs.
void DistributedTraining::obtain(const SliceTree& tree) {
  const BudgetScope charged(memory_.stepping());
  const Untracked gradients(Category::kGradients);
  Device& device = device_of(layout_->changed()[0].value());
  blank_.clear();
  if (sums_->values().empty())
    for (const Variable& variable : layout_->changed())
      blank_.push_back(make_tensor({.op = "sum"}, variable.shape(), variable.dtype(), device));
  const std::size_t wanted = TensorExchange::room_bytes(layout_->space(), tree);
  if (wanted > 0 && (buckets_.is_empty_handle() || buckets_.nbytes() < TensorExchange::least_room_bytes(tree))) {
    const std::size_t usual = TensorExchange::room_bytes(layout_->space(), SliceTree(slices_, job_.size()));
    buckets_ = Tensor();
    buckets_ = make_tensor({.op = "buckets", .category = Category::kWorkspace},
                           {static_cast<std::int64_t>(std::max(wanted, usual))}, u8, device);
  }
  const std::vector<Variable>& changed = layout_->changed();
  network_.training.optimizer->prepare({changed.data(), layout_->num_parameters()}, layout_->stretches());
  if (shards_ && !network_.training.spread)
    network_.training.spread = std::make_shared<OptimizerSpread>(
        OptimizerSpread{job_,
                        layout_->space(),
                        {changed.begin(), changed.begin() + static_cast<std::ptrdiff_t>(layout_->num_parameters())}});
  variable_addresses();  // Makes their bytes their own.
}

StepResult DistributedTraining::step(const Example& batch, const DatasetNode& data) {
  if (!begun_) begin(batch);
  const std::size_t examples = examples_in(batch);
  const SliceTree tree(std::min(slices_, examples), job_.size());
  std::exception_ptr error;
  std::uint64_t layout = 0;
  sums_ = std::make_unique<distributed::SliceSums<Values>>(tree);
  results_.clear();
  exchange_.reset();
  if (shards_parameters_ && !(spread_ && spread_->are_spread())) spread_parameters(batch, data, tree);
  if (steps_ > 0 && (job_.size() == 1 || buckets_.nbytes() >= TensorExchange::least_room_bytes(tree)))
    begin_exchange(tree);
  try {
    compute(batch, data, tree);
    obtain(tree);
    layout = layout_->space().end() + layout_->changed().size();
  } catch (const Unavailable&) {
    told_ = true;
    throw;
  } catch (...) {
    error = std::current_exception();
    results_.clear();
    sums_.reset();
    blank_.clear();
  }
  set_draws(steps_ * slices_);
  try {
    agree(error, error ? 0 : layout, "the model");
  } catch (const Unavailable&) {
    throw;
  } catch (...) {
    if (exchange_) exchange_->drain_reduce();
    throw;
  }
  if (spread_) spread_->begin_change();  // A rank that is ahead gets the new ones.
  StepResult result = combine(examples, tree);
  update(tree);
  if (spread_) spread_->end_change();
  set_draws(++steps_ * slices_);
  memory_.note_trained(result);
  return result;
}

StepResult DistributedTraining::blank_result() const {
  StepResult result;
  result.losses.resize(network_.training.losses.size());
  for (const auto& metrics : network_.training.metrics) {
    result.metrics.emplace_back();
    for (const Metric& metric : metrics) result.metrics.back().push_back(metric.zero_sums());
  }
  return result;
}

std::vector<StepResult> DistributedTraining::share_results(const std::vector<StepResult>& own, std::size_t batches,
                                                           std::exception_ptr error) {
  agree(std::move(error), batches, "the number of batches of validation");
  const auto ranks = static_cast<std::size_t>(job_.size());
  const std::size_t most = (batches + ranks - 1) / ranks;
  const std::vector<StepResult> all = exchange_results(job_, own, most, blank_result());
  std::vector<StepResult> results;
  for (std::size_t i = 0; i < batches; ++i) results.push_back(all[i % ranks * most + i / ranks]);
  return results;
}

// Means and sums over slices, in their order.
StepResult DistributedTraining::combine(std::size_t examples, const SliceTree& tree) {
  StepResult total = blank_result();
  std::size_t most = 0;
  for (int rank = 0; rank < job_.size(); ++rank) most = std::max(most, tree.end(rank) - tree.begin(rank));
  const std::vector<StepResult> all = exchange_results(job_, results_, most, total);
  total.examples = examples;
  for (int rank = 0; rank < job_.size(); ++rank)
    for (std::size_t i = 0; i < tree.end(rank) - tree.begin(rank); ++i) {
      const StepResult& one = all[static_cast<std::size_t>(rank) * most + i];
      const double share = static_cast<double>(one.examples) / static_cast<double>(examples);
      total.loss += one.loss * share;
      total.recomputed += one.recomputed * share;
      if (rank == job_.rank()) total.spilled_bytes += one.spilled_bytes;
      for (std::size_t l = 0; l < total.losses.size(); ++l) {
        total.losses[l] += one.losses[l] * share;
        for (std::size_t m = 0; m < total.metrics[l].size(); ++m)
          for (std::size_t s = 0; s < total.metrics[l][m].size(); ++s) total.metrics[l][m][s] += one.metrics[l][m][s];
      }
    }
  results_.clear();
  return total;
}

// Of those that are not spread.
PartAddresses DistributedTraining::variable_addresses() const {
  PartAddresses addresses(layout_->changed().size());
  for (std::size_t i = first_whole(); i < addresses.size(); ++i)
    addresses[i] = layout_->changed()[i].writable_value().bytes();
  return addresses;
}

// Updates parameters by their gradients and statistics by their new values.
void DistributedTraining::change_variables(const PartAddresses& sum) {
  std::vector<ConstTensorView> gradients;
  const std::vector<Optimizer::Stretch>& stretches = layout_->stretches();
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    const Optimizer::Stretch& stretch = stretches[i];
    const DType dtype = stretch.parameter.dtype();
    gradients.emplace_back(sum[layout_->part_of(i)], static_cast<std::size_t>(stretch.begin) * size_of(dtype), dtype,
                           Shape({stretch.end - stretch.begin}));
  }
  network_.training.optimizer->apply_prepared(stretches, gradients,
                                              spread_ ? spread_->own() : std::vector<TensorView>());
  const PartAddresses values = variable_addresses();
  layout_->visit_updated([&](std::size_t part, std::size_t first, std::size_t bytes) {
    if (part >= layout_->num_parameters()) std::memcpy(values[part] + first, sum[part] + first, bytes);
  });
}

void DistributedTraining::update(const SliceTree& tree) {
  trace_phase("update");
  std::vector<PartAddresses> pieces;
  for (const Values& values : sums_->values()) pieces.push_back(addresses_of(values));
  const PartAddresses sum = pieces.empty() ? addresses_of(blank_) : pieces[0];
  if (!exchange_) begin_exchange(tree);
  exchange_->set_pieces(std::move(pieces), sum);
  exchange_->finish_reduce();
  job_.count_early(exchange_->early_bytes());
  GradientClipper(job_, layout_->space(), layout_->num_parameters()).clip(network_.training.clipping, sum);
  if (shards_) {
    change_variables(sum);
    if (first_whole() < layout_->changed().size())
      exchange_->all_gather(variable_addresses(), layout_->space().group_of(first_whole()));
  } else {
    exchange_->all_gather(sum);
    change_variables(sum);
  }
  for (const auto& [variable, constraint] : constrained_) constraint.apply(variable.writable_value());
  exchange_.reset();
  sums_.reset();
  blank_.clear();
  trace_phase("between steps");
}

}  // namespace plimsoll::internal
