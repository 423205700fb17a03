#pragma once

// A module of LibTorch that a Trainer trains:
//
//   holdfast::torch::TrainableModule<Net> model({
//       .inputs = {{.name = {}, .shape = {784}}},
//       .targets = {{.name = {}, .shape = {}, .dtype = holdfast::DType::i64}},
//       .loss = [](const torch::Tensor& output, const holdfast::torch::Batch& batch) {
//         return torch::cross_entropy_loss(output, batch.target());
//       },
//       .optimizer = [](Net& net) { return std::make_unique<torch::optim::Adam>(net.parameters(), 1e-3); }});
//   holdfast::Trainer trainer(replica, model);
//
// The parameters and the optimizer's state lie in arenas of Holdfast, so that they are mirrored, compared and saved as
// those of Holdfast's own models. One shard computes what plain LibTorch computes, bit for bit. With several shards, a
// module with a batch normalization sees the statistics of its shard, and its moving averages become the mean over the
// shards, weighted by their samples. See docs/torch.md for what a module must keep to.

#include <torch/nn/pimpl.h>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "holdfast/torch/module_functions.h"
#include "holdfast/train/trainable.h"

namespace holdfast::torch {

// How a module class and its holder (TORCH_MODULE) are made and called. For Holdfast.
template <typename M>
struct ModuleKind {
  using Module = M;                   // what functions get
  using Handle = std::shared_ptr<M>;  // what a factory returns
  // The module of a handle.
  static std::shared_ptr<M> pointer(const Handle& handle) { return handle; }
};
// A class that TORCH_MODULE made.
template <typename H>
concept ModuleHolder = std::derived_from<H, ::torch::nn::ModuleHolder<typename H::ContainedType>>;

// The same for a holder.
template <ModuleHolder H>
struct ModuleKind<H> {
  using Module = typename H::ContainedType;  // what functions get
  using Handle = H;                          // what a factory returns
  // The module of a holder.
  static std::shared_ptr<Module> pointer(const Handle& handle) { return handle.ptr(); }
};

// An optimizer of LibTorch, by a function that makes it for a module, or one of Holdfast's. Converts from both:
//
//   .optimizer = [](Net& net) { return std::make_unique<torch::optim::SGD>(net.parameters(), 0.1); }
//   .optimizer = holdfast::AdamW({.learning_rate = 1e-3})
//
// A function and not an object, since each worker has a module of its own, and LibTorch's optimizers hold the
// parameters of one module.
template <typename Module>
class OptimizerOf {
 public:
  // A function of the module: SGD, Adam, AdamW, RMSprop or Adagrad of torch::optim, with parameter groups as they like.
  template <std::invocable<Module&> F>
  requires std::convertible_to<std::invoke_result_t<F, Module&>, std::unique_ptr<::torch::optim::Optimizer>>
  OptimizerOf(F make) : make_(std::move(make)) {}  // NOLINT(google-explicit-constructor)
  // One of Holdfast's; a copy is kept.
  OptimizerOf(const Optimizer& optimizer) : own_(optimizer.clone()) {}  // NOLINT(google-explicit-constructor)

  // Empty if own() is there.
  const std::function<std::unique_ptr<::torch::optim::Optimizer>(Module&)>& make() const { return make_; }
  // Null if make() is there.
  const std::shared_ptr<const Optimizer>& own() const { return own_; }

 private:
  std::function<std::unique_ptr<::torch::optim::Optimizer>(Module&)> make_;
  std::shared_ptr<const Optimizer> own_;
};

// How a module is made, called and trained.
template <typename M>
struct TrainableOptions {
  using Module = typename ModuleKind<M>::Module;  // what functions get

  // Makes a module: always the same one, but for the draws of its initial parameters and of f32 buffers. Called for
  // each worker, since each has a module of its own, and three times besides. The default calls the constructor without
  // arguments.
  std::function<typename ModuleKind<M>::Handle()> module{};
  std::vector<ArraySpec> inputs{};   // of a sample, as the data set has them
  std::vector<ArraySpec> targets{};  // likewise
  // The outputs for the samples of a shard. The default is module.forward(batch.input()).
  std::function<Outputs(Module& module, const Batch& batch)> forward{};
  // What is minimised: a scalar, the mean over the samples of the shard, or a tensor [samples] with a value for each.
  // Only the latter takes weights of samples.
  OutputFunction loss{};
  std::vector<Metric> metrics{};  // reported besides the loss
  // Required: of LibTorch by a function, or one of Holdfast's. See OptimizerOf.
  std::optional<OptimizerOf<Module>> optimizer{};
  // A schedule for the first parameter group of an optimizer of LibTorch; other groups keep the ratio of their rates
  // to its rate. Empty: the rates of the optimizer.
  std::optional<LearningRate> learning_rate{};
  // Applied to the sum over all shards before an optimizer of LibTorch gets it; see gradient_clipping.h. One of
  // Holdfast's has its own, so both together are refused.
  GradientClipping clipping{};
  // Whether forward() may draw from LibTorch's generator, as torch::nn::Dropout does. Its draws are then a function of
  // (seed, step, shard), and the shards of a process are computed one after another, because there is one generator.
  // If false, shards are computed at once, and a draw is refused.
  bool draws = true;
  // What the bits depend on and Holdfast cannot see, such as sizes that the class was made with. A run refuses to go
  // on with another description.
  std::string description{};
};

// The part that does not depend on the module's class. Made by TrainableModule. One thread at a time may call it,
// except where Trainable says that several do: compute_gradients(), compute_sums() and predict().
//
// Errors: Error{invalid_argument} for options that cannot work; Error{unsupported} for parameters that are not f32, an
// optimizer that Holdfast does not know, an operation of LibTorch without a deterministic implementation, a module
// that changes its integer buffers, draws unseen or remembers earlier calls, and a device that docs/torch.md does not
// name; those of a device that fails, as for Holdfast's own models.
class AnyTrainableModule : public Trainable {
 public:
  // Calls make_module() once, and forward() with two samples of zeros, to learn the shapes.
  explicit AnyTrainableModule(ModuleFunctions functions);
  ~AnyTrainableModule() override;

  std::string graph() const override;
  std::string configuration() const override;
  std::string arithmetic() const override;
  Shape feature_shape() const override;
  Shape target_shape() const override;
  Shape output_shape() const override;
  std::vector<ArraySpec> inputs() const override;
  std::vector<ArraySpec> targets() const override;
  std::vector<ArraySpec> outputs() const override;
  void check_sample_weights(const ArraySpec& weights) const override;
  void prepare(const Workers& workers) override;
  MemorySpace& memory() override;
  bool reads_samples_on_device() const override;
  void initialize(std::uint64_t seed) override;
  std::vector<StateSpan> state() override;
  std::vector<std::string> sum_names() const override;
  std::size_t gradient_count() const override;
  void compute_gradients(const ShardBatch& batch, GradientSink& sink, std::span<float> sums) override;
  void compute_sums(const ShardBatch& batch, std::span<float> sums) override;
  void predict(const ShardBatch& batch, std::span<float> outputs) override;
  std::optional<float> learning_rate(std::int64_t update) const override;
  void check_learning_rate(float rate) const override;
  void apply_update(const Update& update) override;

  // A module that shares the parameters of this trainable, with the present buffers and in eval(), on the device of the
  // run. Valid as long as this object; the next update changes its parameters. Call it after fit().
  std::shared_ptr<::torch::nn::Module> module();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

// The seed that LibTorch's generator is given before the initial module is made: the run's own. A plain program that
// compares its bits with those of a run of one shard makes the same calls:
//
//   torch::manual_seed(seed_of_initial_parameters(seed));  // before the module is made
//   torch::manual_seed(seed_of_shard(seed, step, 0));      // before each step
std::uint64_t seed_of_initial_parameters(std::uint64_t seed);
// The seed that it is given before the shard whose first sample has this position in the global batch. A program that
// seeds alike draws alike.
std::uint64_t seed_of_shard(std::uint64_t seed, std::int64_t step, std::int64_t first_sample);

// What an application makes, with a module class or its holder as M; the example stands at the top of this file. It
// only takes the class away from the functions of the options: all else is in AnyTrainableModule. Keep it as long as
// the Trainer that trains it.
template <typename M>
class TrainableModule final : public AnyTrainableModule {
 public:
  // See TrainableOptions.
  using Module = typename ModuleKind<M>::Module;

  // Errors: as AnyTrainableModule.
  explicit TrainableModule(TrainableOptions<M> options) : AnyTrainableModule(functions_of(std::move(options))) {}

 private:
  static Module& cast(::torch::nn::Module& module) { return dynamic_cast<Module&>(module); }

  static ModuleFunctions functions_of(TrainableOptions<M> options) {
    ModuleFunctions functions;
    if constexpr (std::default_initializable<Module>) {
      if (!options.module) {
        options.module = [] { return typename ModuleKind<M>::Handle(std::make_shared<Module>()); };
      }
    }
    if (options.module) {
      functions.make_module = [make = std::move(options.module)]() -> std::shared_ptr<::torch::nn::Module> {
        return ModuleKind<M>::pointer(make());
      };
    }
    if constexpr (requires(Module & module, const at::Tensor& input) { Outputs(module.forward(input)); }) {
      if (!options.forward) {
        options.forward = [](Module& module, const Batch& batch) { return Outputs(module.forward(batch.input())); };
      }
    }
    if (options.forward) {
      functions.forward = [forward = std::move(options.forward)](::torch::nn::Module& module, const Batch& batch) {
        return forward(cast(module), batch);
      };
    }
    if (options.optimizer && options.optimizer->make()) {
      functions.make_optimizer = [make = options.optimizer->make()](::torch::nn::Module& module) {
        return make(cast(module));
      };
    }
    if (options.optimizer) functions.optimizer = options.optimizer->own();
    functions.loss = std::move(options.loss);
    functions.metrics = std::move(options.metrics);
    functions.inputs = std::move(options.inputs);
    functions.targets = std::move(options.targets);
    functions.learning_rate = std::move(options.learning_rate);
    functions.clipping = options.clipping;
    functions.draws = options.draws;
    functions.description = std::move(options.description);
    return functions;
  }
};

}  // namespace holdfast::torch
