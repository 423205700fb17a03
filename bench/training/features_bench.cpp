// An epoch of a head under frozen layers: computed in each step, and on outputs that were computed once, in memory and
// in a file. The three take turns, so that a busy moment of the machine hits all alike.
//
//   bench_features FILE [ROUNDS]      FILE: where the outputs are kept; it must not exist

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "holdfast/holdfast.h"

namespace {

using namespace holdfast;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSamples = 512;
constexpr std::int64_t kBatch = 32;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Dataset noise() {
  Tensor pictures{Shape{kSamples, 32, 32, 3}};
  Tensor labels{Shape{kSamples}};
  for (std::int64_t i = 0; i < kSamples; ++i) {
    Random random(1, Purpose::user, 0, static_cast<std::uint64_t>(i));
    for (float& value : pictures.sample(i)) value = random.normal();
    labels.sample(i)[0] = static_cast<float>(random.below(10));
  }
  return from_tensors(std::move(pictures), std::move(labels));
}

Model drawn_base() {
  Value x = input({32, 32, 3});
  const Value first = x;
  for (const std::int64_t filters : {32, 64, 128}) {
    x = Conv2D{filters, 3, {.padding = Padding::same, .activation = Activation::relu}}(x);
    x = Conv2D{filters, 3, {.padding = Padding::same, .activation = Activation::relu}}(x);
    x = MaxPooling2D{2}(x);
  }
  Model model(first, GlobalAveragePooling{{.name = "features"}}(x));
  std::vector<float> parameters(model.parameters().float_count());
  std::vector<float> buffers(model.buffers().float_count());
  model.initialize(3, parameters, buffers);
  // cached_outputs() and take_weights() refuse a model without weights. Drawn ones do, since only time is measured.
  model.set_weights(std::move(parameters), std::move(buffers));
  return model;
}

Value head_of(const Value& features) {
  return Dense{10}(Dense{64, {.activation = Activation::relu}}(features));
}

// One Trainer, whose epochs are timed one by one.
class TimedHead {
 public:
  TimedHead(std::string name, const Model& model, Dataset data)
      : name_(std::move(name)),
        trainer_(replica_, model, Adam{}, SparseCategoricalCrossentropy{{.from_logits = true}}),
        data_(std::move(data)) {}

  void train_epoch() {
    const Clock::time_point begin = Clock::now();
    trainer_.fit(data_.shuffle().batch(kBatch));
    seconds_.push_back(seconds_since(begin));
  }

  // Without the first epoch, which makes kernels.
  double median() {
    std::sort(seconds_.begin() + 1, seconds_.end());
    return seconds_[1 + (seconds_.size() - 1) / 2];
  }
  void print(double of_frozen) {
    // Sorts the times, so it comes before the first and the last of them.
    const double seconds = median();
    std::printf("%-24s %8.2f ms an epoch (%.2f to %.2f), 1/%.0f\n", name_.c_str(), 1e3 * seconds, 1e3 * seconds_[1],
                1e3 * seconds_.back(), of_frozen / seconds);
  }

 private:
  std::string name_;
  Replica replica_ = Replica::alone({.shards = 2});
  Trainer trainer_;
  Dataset data_;
  std::vector<double> seconds_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_features FILE [ROUNDS]\n");
    return 2;
  }
  // The first round is not counted, so there must be another one.
  const int rounds = argc > 2 ? std::max(2, std::atoi(argv[2])) : 7;
  const Dataset pictures = noise();
  const Model base = drawn_base();

  const Value x = input({32, 32, 3});
  // The same head twice: on the frozen layers themselves, and on an input that takes their outputs.
  Model whole(x, head_of(base.frozen().call({x}, "base").at(0)));
  whole.take_weights(base.frozen(), "base");
  const Value features = input(base.output_shape());
  const Model head(features, head_of(features));

  // Only the outputs in memory are timed. The same computation fills the file.
  const Clock::time_point begin = Clock::now();
  const Dataset in_memory = cached_outputs(base, pictures);
  std::printf("outputs computed in %.2f s\n", seconds_since(begin));
  TimedHead of_frozen("frozen layers computed", whole, pictures);
  TimedHead of_memory("kept in memory", head, in_memory);
  TimedHead of_file("kept in a file", head, cached_outputs(base, pictures, {.file = argv[1]}));
  for (int round = 0; round < rounds; ++round) {
    for (TimedHead* each : {&of_frozen, &of_memory, &of_file}) each->train_epoch();
  }
  const double seconds = of_frozen.median();
  for (TimedHead* each : {&of_frozen, &of_memory, &of_file}) each->print(seconds);
  return 0;
}
