// Logs: numbers by name, for a step or an epoch: {"loss": 0.31, "accuracy": 0.87}. History: all epochs of a fit.
//
//   float loss = model.train_on_batch(x, y)["loss"];
//   History h = model.fit(train, {.epochs = 10});  h["val_loss"].back(); h.peak_bytes();
//
// They throw NotFound for a name that does not exist, naming those that do.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll {

class PLIMSOLL_API Logs {
 public:
  float operator[](std::string_view name) const;
  const float* find(std::string_view name) const noexcept;  // nullptr when it does not exist.
  void set(std::string_view name, float value);
  auto begin() const noexcept { return entries_.begin(); }  // Pairs of name and value, in the order they were set.
  auto end() const noexcept { return entries_.end(); }
  std::size_t size() const noexcept { return entries_.size(); }

 private:
  std::vector<std::pair<std::string, float>> entries_;
};

class PLIMSOLL_API History {
 public:
  const std::vector<float>& operator[](std::string_view name) const;  // One value per epoch.
  bool contains(std::string_view name) const noexcept;
  std::vector<std::string> names() const;
  std::size_t num_epochs() const noexcept { return num_epochs_; }
  std::size_t peak_bytes() const noexcept { return peak_bytes_; }  // Of the fit, counted as in a forecast.
  // The fraction of the training steps' work that was recomputing, to stay inside the budget: 0.12 for 12 %.
  double recomputed_fraction() const noexcept { return recomputed_fraction_; }
  std::size_t spilled_bytes() const noexcept { return spilled_bytes_; }  // Written to the spill directory by all steps.

  // When live memory rose from step to step or from epoch to epoch: by how much, and what caused it. Otherwise "".
  const std::string& growth() const noexcept { return growth_; }

  void add(const Logs& epoch);
  void set_growth(std::string text) { growth_ = std::move(text); }
  void set_peak_bytes(std::size_t bytes) noexcept { peak_bytes_ = bytes; }
  void set_recomputed_fraction(double fraction) noexcept { recomputed_fraction_ = fraction; }
  void set_spilled_bytes(std::size_t bytes) noexcept { spilled_bytes_ = bytes; }

 private:
  std::vector<std::pair<std::string, std::vector<float>>> rows_;
  std::size_t num_epochs_ = 0;
  std::size_t peak_bytes_ = 0, spilled_bytes_ = 0;
  double recomputed_fraction_ = 0;
  std::string growth_;
};

// A tidy finds no tensors in it.
template <class F>
void visit_tensors(const History&, F&&) {}

}  // namespace plimsoll
