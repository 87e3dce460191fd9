// SharedLayers: while it lives, a layer that a file describes several times, with one shared_object_id, is one layer.
//
// Keras 3 writes a layer that is part of two models in both of them, and its weights once. Thread safety: a scope of
// this thread.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "plimsoll/model/layers/layer.h"

namespace plimsoll::internal {

class SharedLayers {
 public:
  SharedLayers() noexcept : before_(current_) { current_ = this; }
  ~SharedLayers() { current_ = before_; }
  SharedLayers(const SharedLayers&) = delete;
  SharedLayers& operator=(const SharedLayers&) = delete;

  // The earlier layer; nullptr when there is none, or no scope.
  static std::shared_ptr<LayerBase> find(const nlohmann::json& in) {
    const auto id = id_of(in);
    if (current_ == nullptr || !id) return nullptr;
    const auto found = current_->layers_.find(*id);
    return found == current_->layers_.end() ? nullptr : found->second;
  }
  static std::shared_ptr<LayerBase> note(const nlohmann::json& in, std::shared_ptr<LayerBase> layer) {
    const auto id = id_of(in);
    if (current_ != nullptr && id) current_->layers_.emplace(*id, layer);
    return layer;
  }

 private:
  static std::optional<std::uint64_t> id_of(const nlohmann::json& in) {
    const auto found = in.find("shared_object_id");
    if (found == in.end() || !found->is_number_unsigned()) return std::nullopt;
    return found->get<std::uint64_t>();
  }
  std::map<std::uint64_t, std::shared_ptr<LayerBase>> layers_;
  SharedLayers* const before_;
  inline static thread_local SharedLayers* current_ = nullptr;
};

}  // namespace plimsoll::internal
