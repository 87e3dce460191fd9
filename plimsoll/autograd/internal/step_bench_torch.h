// The models of step_bench in libtorch, and its tensors' bytes.
//
// Gradients are dropped before each step rather than cleared: the faster way, and the one that holds less.
#pragma once

#include <c10/core/Allocator.h>
#include <dlfcn.h>
#include <torch/torch.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <vector>

namespace plimsoll::step_bench {

// Counts the bytes of libtorch's tensors while it is its allocator. Scratch of the libraries below it goes uncounted.
class CountingAllocator final : public c10::Allocator {
 public:
  static constexpr std::size_t kHead = 64;
  static inline std::atomic<std::size_t> used = 0, peak = 0;

  c10::DataPtr allocate(std::size_t bytes) const override {
    void* const block = std::aligned_alloc(kHead, (bytes + 2 * kHead - 1) / kHead * kHead);
    *static_cast<std::size_t*>(block) = bytes;
    used += bytes;
    peak = std::max(peak.load(), used.load());
    void* const data = static_cast<std::byte*>(block) + kHead;
    return {data, data, &free_block, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }

 private:
  static void free_block(void* data) {
    void* const block = static_cast<std::byte*>(data) - kHead;
    used -= *static_cast<std::size_t*>(block);
    std::free(block);
  }
};

// While it lives.
class CountTorch {
 public:
  CountTorch() : before_(c10::GetAllocator(c10::DeviceType::CPU)) {
    static CountingAllocator counting;
    c10::SetAllocator(c10::DeviceType::CPU, &counting);
  }
  ~CountTorch() { c10::SetAllocator(c10::DeviceType::CPU, before_); }

 private:
  c10::Allocator* before_;
};

// Threads of libtorch's own pool, and of its OpenBLAS.
inline void set_torch_threads(int own, int blas) {
  at::set_num_threads(own);
  using Set = void (*)(int);
  static const Set set = reinterpret_cast<Set>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set) set(blas);
}

class TorchModel {
 public:
  virtual ~TorchModel() = default;
  virtual torch::Tensor loss() = 0;
  virtual double step() {
    for (torch::Tensor& parameter : parameters_) parameter.mutable_grad() = torch::Tensor();
    const torch::Tensor value = loss();
    value.backward();
    adam_->step();
    return value.item<float>();
  }

 protected:
  void train(std::vector<torch::Tensor> parameters) {
    parameters_ = std::move(parameters);
    adam_ = std::make_unique<torch::optim::Adam>(parameters_, torch::optim::AdamOptions(1e-3));
  }

 private:
  std::vector<torch::Tensor> parameters_;
  std::unique_ptr<torch::optim::Adam> adam_;
};

class TorchMlp final : public TorchModel {
 public:
  TorchMlp(const std::vector<std::int64_t>& sizes, std::int64_t batch)
      : x_(torch::randn({batch, sizes.front()})), binary_(sizes.back() == 1) {
    y_ = binary_ ? (torch::rand({batch, 1}) > 0.5).to(torch::kFloat)
                 : torch::arange(batch, torch::kLong).remainder(sizes.back());
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
      if (i > 0) net_->push_back(torch::nn::ReLU());
      net_->push_back(torch::nn::Linear(sizes[i], sizes[i + 1]));
    }
    train(net_->parameters());
  }
  torch::Tensor loss() override {
    const torch::Tensor h = net_->forward(x_);
    return binary_ ? torch::binary_cross_entropy_with_logits(h, y_) : torch::cross_entropy_loss(h, y_);
  }

 private:
  torch::Tensor x_, y_;
  bool binary_;
  torch::nn::Sequential net_;
};

class TorchLstm final : public TorchModel {
 public:
  TorchLstm(std::int64_t inputs, std::int64_t units, std::int64_t time, std::int64_t batch)
      : x_(torch::randn({time, batch, inputs})),  // Its own order, which it need not transpose.
        y_(torch::randn({batch, 1})),
        lstm_(inputs, units),
        head_(units, 1) {
    std::vector<torch::Tensor> parameters = lstm_->parameters();
    for (const torch::Tensor& parameter : head_->parameters()) parameters.push_back(parameter);
    train(parameters);
  }
  torch::Tensor loss() override {
    const torch::Tensor sequence = std::get<0>(lstm_->forward(x_));
    return torch::mse_loss(head_->forward(sequence[-1]), y_);
  }

 private:
  torch::Tensor x_, y_;
  torch::nn::LSTM lstm_;
  torch::nn::Linear head_;
};

class TorchLenet final : public TorchModel {
 public:
  explicit TorchLenet(std::int64_t batch)
      : x_(torch::randn({batch, 3, 32, 32})), y_(torch::arange(batch, torch::kLong).remainder(10)) {
    train(net_->parameters());
  }
  torch::Tensor loss() override { return torch::cross_entropy_loss(net_->forward(x_), y_); }

 private:
  torch::Tensor x_, y_;
  torch::nn::Sequential net_{torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 6, 5)),
                             torch::nn::ReLU(),
                             torch::nn::MaxPool2d(2),
                             torch::nn::Conv2d(torch::nn::Conv2dOptions(6, 16, 5)),
                             torch::nn::ReLU(),
                             torch::nn::MaxPool2d(2),
                             torch::nn::Flatten(),
                             torch::nn::Linear(400, 120),
                             torch::nn::ReLU(),
                             torch::nn::Linear(120, 84),
                             torch::nn::ReLU(),
                             torch::nn::Linear(84, 10)};
};

class TorchResnet final : public TorchModel {
 public:
  explicit TorchResnet(std::int64_t batch)
      : x_(torch::randn({batch, 3, 32, 32})), y_(torch::arange(batch, torch::kLong).remainder(10)) {
    std::vector<torch::Tensor> parameters = head_->parameters();
    for (torch::nn::Sequential* part : {&stem_, &first_, &second_, &across_})
      for (const torch::Tensor& parameter : (*part)->parameters()) parameters.push_back(parameter);
    train(parameters);
  }
  torch::Tensor loss() override {
    const torch::Tensor a = stem_->forward(x_).relu_();
    const torch::Tensor b = first_->forward(a).add_(a).relu_();
    const torch::Tensor c = second_->forward(b).add_(across_->forward(b)).relu_();
    return torch::cross_entropy_loss(head_->forward(c.mean({2, 3})), y_);
  }

 private:
  static torch::nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t size) {
    return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, size).padding(size / 2).bias(false));
  }
  static torch::nn::Sequential pair(std::int64_t in, std::int64_t out) {
    return torch::nn::Sequential(conv(in, out, 3), torch::nn::BatchNorm2d(out),
                                 torch::nn::ReLU(torch::nn::ReLUOptions(true)), conv(out, out, 3),
                                 torch::nn::BatchNorm2d(out));
  }

  torch::Tensor x_, y_;
  torch::nn::Sequential stem_{conv(3, 32, 3), torch::nn::BatchNorm2d(32)};
  torch::nn::Sequential first_ = pair(32, 32), second_ = pair(32, 64);
  torch::nn::Sequential across_{conv(32, 64, 1), torch::nn::BatchNorm2d(64)};
  torch::nn::Linear head_{64, 10};
};

class TorchLayerNorm final : public TorchModel {
 public:
  explicit TorchLayerNorm(std::int64_t size)
      : x_(torch::randn({size, size}, torch::requires_grad())), norm_(torch::nn::LayerNormOptions({size})) {}
  torch::Tensor loss() override { return norm_->forward(x_); }
  double step() override {
    const torch::Tensor y = loss();  // Both sides begin with a gradient of ones, made in the step.
    const auto gradients = torch::autograd::grad({y}, {x_, norm_->weight, norm_->bias}, {torch::ones_like(y)});
    return 0;
  }

 private:
  torch::Tensor x_;
  torch::nn::LayerNorm norm_;
};

class TorchTransformer final : public TorchModel {
 public:
  TorchTransformer(std::int64_t layers, std::int64_t width, std::int64_t heads, std::int64_t inner, std::int64_t time,
                   std::int64_t batch)
      : x_(torch::randn({time, batch, width})), y_(torch::randn({time, batch, width})) {
    const auto layer = torch::nn::TransformerEncoderLayer(
        torch::nn::TransformerEncoderLayerOptions(width, heads).dim_feedforward(inner).dropout(0));
    encoder_ = torch::nn::TransformerEncoder(torch::nn::TransformerEncoderOptions(layer, layers));
    train(encoder_->parameters());
  }
  torch::Tensor loss() override { return torch::mse_loss(encoder_->forward(x_), y_); }

 private:
  torch::Tensor x_, y_;
  torch::nn::TransformerEncoder encoder_{nullptr};
};

}  // namespace plimsoll::step_bench
