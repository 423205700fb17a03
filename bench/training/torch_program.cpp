// torch_program --engine holdfast|plain --model resnet|transformer|mlp [--steps 50] [--batch 32] [--threads 1]
// [--replicas 1] [--folder DIR]: trains modules of LibTorch for some steps, through fit() or as a program of LibTorch
// does. bench/torch measures both. Models are those of examples/libtorch, and a perceptron of 41 million parameters.

#include <sys/resource.h>
#include <time.h>
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/holdfast.h"
#include "holdfast/torch.h"
#include "models.h"

namespace {

// The first steps make what is made once, such as the slots of an optimizer.
constexpr std::int64_t kFirstSteps = 5;  // that are not measured
constexpr std::int64_t kBatches = 8;

struct Arguments {
  std::string engine = "holdfast";
  std::string model = "resnet";
  std::int64_t steps = 50;
  std::int64_t batch = 32;  // of all replicas
  int threads = 1;
  int replicas = 1;
  std::string folder = "torch-program-run";
};

// The layers of measured_mlp(), which bench/train measures.
struct Mlp : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return layers->forward(x); }

  torch::nn::Sequential layers = register_module(
      "layers", torch::nn::Sequential(torch::nn::Linear(8000, 4000), torch::nn::Tanh(), torch::nn::Linear(4000, 2000),
                                      torch::nn::ReLU(), torch::nn::Linear(2000, 500), torch::nn::ReLU(),
                                      torch::nn::Linear(500, 300), torch::nn::ReLU(), torch::nn::Linear(300, 1)));
};

// A model, its samples, and how it is trained: the same for both engines.
template <class M>
struct Case;

template <>
struct Case<ResNet> {
  // Whether forward() draws, as dropout does. Holdfast then computes the shards of a process one after another.
  static constexpr bool kDraws = false;
  static holdfast::Shape features() { return {28, 28, 1}; }
  // Samples are f32 for both engines. Classes and tokens become integers where LibTorch needs them.
  static holdfast::Shape targets() { return {}; }
  static float number(float noise) { return noise; }
  static float target(float noise) { return std::floor(10 * noise); }
  static torch::Tensor forward(ResNet& net, const torch::Tensor& x) { return net.forward(x); }
  static torch::Tensor loss(const torch::Tensor& output, const torch::Tensor& /*x*/, const torch::Tensor& y) {
    return torch::cross_entropy_loss(output, y.to(torch::kLong));
  }
  static std::unique_ptr<torch::optim::Optimizer> optimizer(ResNet& net) {
    return std::make_unique<torch::optim::SGD>(net.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  }
};

template <>
struct Case<Transformer> {
  static constexpr bool kDraws = true;
  // A token more than the network reads. It predicts all but the first from all but the last, so the target of the
  // sample itself is not looked at.
  static holdfast::Shape features() { return {Transformer::kLength + 1}; }
  static holdfast::Shape targets() { return {}; }
  static float number(float noise) { return std::floor(Transformer::kTokens * noise); }
  static float target(float /*noise*/) { return 0; }
  static torch::Tensor forward(Transformer& net, const torch::Tensor& x) {
    return net.forward(x.narrow(1, 0, Transformer::kLength).to(torch::kLong));
  }
  static torch::Tensor loss(const torch::Tensor& output, const torch::Tensor& x, const torch::Tensor& /*y*/) {
    const torch::Tensor next = x.narrow(1, 1, Transformer::kLength).to(torch::kLong);
    return torch::cross_entropy_loss(output.flatten(0, 1), next.flatten());
  }
  static std::unique_ptr<torch::optim::Optimizer> optimizer(Transformer& net) {
    return std::make_unique<torch::optim::AdamW>(net.parameters(), 3e-3);
  }
};

template <>
struct Case<Mlp> {
  static constexpr bool kDraws = false;
  static holdfast::Shape features() { return {8000}; }
  static holdfast::Shape targets() { return {1}; }
  static float number(float noise) { return noise; }
  static float target(float noise) { return noise < 0.5F ? 0 : 1; }
  static torch::Tensor forward(Mlp& net, const torch::Tensor& x) { return net.forward(x); }
  static torch::Tensor loss(const torch::Tensor& output, const torch::Tensor& /*x*/, const torch::Tensor& y) {
    return torch::binary_cross_entropy_with_logits(output, y, {}, {}, at::Reduction::Mean);
  }
  static std::unique_ptr<torch::optim::Optimizer> optimizer(Mlp& net) {
    return std::make_unique<torch::optim::Adam>(net.parameters(), 1e-4);
  }
};

// Eight batches of noise.
template <class M>
std::pair<holdfast::Tensor, holdfast::Tensor> samples_of(std::int64_t batch) {
  const std::int64_t samples = kBatches * batch;
  std::pair tensors(holdfast::Tensor(Case<M>::features().with_batch(samples)),
                    holdfast::Tensor(Case<M>::targets().with_batch(samples)));
  // The generator of measured_models.cpp: integers alone, so the samples are the same with every library.
  std::uint64_t state = 1;
  const auto next = [&state] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<float>(state >> 40U) * 0x1p-24F;
  };
  for (float& value : tensors.first.values()) value = Case<M>::number(next());
  for (float& value : tensors.second.values()) value = Case<M>::target(next());
  return tensors;
}

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Pages of memory that the system gave to the process so far.
std::int64_t pages_of_process() {
  // Minor faults. Memory that malloc gives back and asks for again is seen here, which bench/torch looks into.
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// The time of each step, from the end of the one before, and the processor time and new pages of all.
class StepTimes {
 public:
  void step_ended(std::int64_t step) {
    const double now = seconds_of(CLOCK_MONOTONIC);
    if (step > kFirstSteps) milliseconds_.push_back(1e3 * (now - last_));
    // These are sums of the process, so they begin where the measured steps do.
    if (step == kFirstSteps) {
      processor_ = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
      pages_ = pages_of_process();
    }
    last_ = now;
  }

  void print() {
    const double processor = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - processor_;
    const auto pages = static_cast<double>(pages_of_process() - pages_);
    const auto steps = static_cast<double>(milliseconds_.size());
    std::sort(milliseconds_.begin(), milliseconds_.end());
    // bench/torch reads this line.
    std::printf("median %.4f ms least %.4f ms processor %.4f ms pages %.1f of %zu steps\n",
                milliseconds_[milliseconds_.size() / 2], milliseconds_.front(), 1e3 * processor / steps, pages / steps,
                milliseconds_.size());
  }

 private:
  double last_ = 0;
  double processor_ = 0;
  std::int64_t pages_ = 0;
  std::vector<double> milliseconds_;
};

class MeasuresSteps final : public holdfast::Callback {
 public:
  explicit MeasuresSteps(std::int64_t steps) : steps_(steps) {}
  std::string name() const override { return "step times"; }
  void on_step_end(holdfast::TrainingContext& context, const holdfast::Logs& /*logs*/) override {
    times_.step_ended(context.step());
    // The number of the step is the same on all ranks, as it must be where all ask for the end.
    if (context.step() < kFirstSteps + steps_) return;
    if (context.is_primary()) times_.print();
    context.stop_training();
  }

 private:
  const std::int64_t steps_;
  StepTimes times_;
};

template <class M>
void train_with_holdfast(holdfast::Replica& replica, const Arguments& arguments) {
  holdfast::torch::TrainableModule<M> model({
      .inputs = {{.name = {}, .shape = Case<M>::features()}},
      .targets = {{.name = {}, .shape = Case<M>::targets()}},
      .forward =
          [](M& net, const holdfast::torch::Batch& batch) {
            return holdfast::torch::Outputs(Case<M>::forward(net, batch.input()));
          },
      .loss = [](const torch::Tensor& output,
                 const holdfast::torch::Batch& batch) { return Case<M>::loss(output, batch.input(), batch.target()); },
      .optimizer = [](M& net) { return Case<M>::optimizer(net); },
      .draws = Case<M>::kDraws,
  });
  holdfast::Trainer trainer(replica, model);
  auto [features, targets] = samples_of<M>(arguments.batch);
  const holdfast::Dataset samples = holdfast::from_tensors(std::move(features), std::move(targets));
  // All repetitions are one epoch, so that no measured step has the end of an epoch in it. Checks compute some
  // gradients twice, which a plain program does not, so they are off.
  trainer.fit(samples.repeat(1'000'000).batch(arguments.batch),
              {.callbacks = {std::make_shared<MeasuresSteps>(arguments.steps)}, .check_gradients = {.every = 0}});
}

template <class M>
void train_with_libtorch(const Arguments& arguments) {
  torch::set_num_threads(arguments.threads);
  M net;
  const auto optimizer = Case<M>::optimizer(net);
  auto [features, targets] = samples_of<M>(arguments.batch);
  // Without a copy: `features` and `targets` own the memory, and live until the end.
  const auto tensor_of = [](holdfast::Tensor& from) {
    const auto extents = from.shape().extents();
    return torch::from_blob(from.values().data(), at::IntArrayRef(extents.data(), extents.size()), torch::kFloat);
  };
  const torch::Tensor x = tensor_of(features), y = tensor_of(targets);
  StepTimes times;
  for (std::int64_t step = 1; step <= kFirstSteps + arguments.steps; ++step) {
    // Batches are views, which costs LibTorch nothing. Loading them is part of what fit() costs.
    const std::int64_t first = step % kBatches * arguments.batch;
    const torch::Tensor input = x.narrow(0, first, arguments.batch), target = y.narrow(0, first, arguments.batch);
    optimizer->zero_grad();
    const torch::Tensor loss = Case<M>::loss(Case<M>::forward(net, input), input, target);
    loss.backward();
    optimizer->step();
    times.step_ended(step);
  }
  times.print();
}

template <class M>
int train(int argc, char** argv, const Arguments& arguments) {
  if (arguments.engine == "plain") {
    train_with_libtorch<M>(arguments);
    return 0;
  }
  // Without a watchdog, as the plain program has none: the loop itself is compared.
  if (arguments.replicas == 1) {
    holdfast::Replica replica = holdfast::Replica::alone({.threads_per_shard = arguments.threads});
    train_with_holdfast<M>(replica, arguments);
    return 0;
  }
  // As many shards as replicas, as a process of DistributedDataParallel has one part of the batch.
  return holdfast::supervise(argc, argv,
                             {.replicas = arguments.replicas,
                              .run_directory = arguments.folder,
                              .shards = arguments.replicas,
                              .threads_per_shard = arguments.threads},
                             [&](holdfast::Replica& replica) { train_with_holdfast<M>(replica, arguments); });
}

}  // namespace

int main(int argc, char** argv) try {
  Arguments arguments;
  CLI::App app("Trains modules of LibTorch for some steps; for bench/torch.");
  app.add_option("--engine", arguments.engine)->check(CLI::IsMember({"holdfast", "plain"}));
  app.add_option("--model", arguments.model)->check(CLI::IsMember({"resnet", "transformer", "mlp"}));
  app.add_option("--steps", arguments.steps, "steps that are measured")->check(CLI::PositiveNumber);
  app.add_option("--batch", arguments.batch, "samples a step, of all replicas")->check(CLI::PositiveNumber);
  app.add_option("--threads", arguments.threads, "threads of each replica")->check(CLI::PositiveNumber);
  app.add_option("--replicas", arguments.replicas, "of Holdfast")->check(CLI::PositiveNumber);
  app.add_option("--folder", arguments.folder, "run directory of several replicas, which must be new");
  CLI11_PARSE(app, argc, argv);
  if (arguments.model == "resnet") return train<ResNet>(argc, argv, arguments);
  if (arguments.model == "transformer") return train<Transformer>(argc, argv, arguments);
  return train<Mlp>(argc, argv, arguments);
} catch (const std::exception& error) {
  std::fprintf(stderr, "torch_program: %s\n", error.what());
  return 1;
}
