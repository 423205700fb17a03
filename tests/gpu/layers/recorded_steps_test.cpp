// Steps that the device repeats as graphs, compared with the same steps queued kernel by kernel.

#include <cstdlib>
#include <limits>
#include <mutex>

#include "gpu/layers/support/layer_test.h"
#include "holdfast/base/log.h"
#include "holdfast/holdfast.h"
#include "train/step/model_trainable.h"

namespace holdfast {
namespace {

constexpr std::int64_t kSteps = 6;
constexpr std::int64_t kSamples = 24;

// A model with cuDNN, cuBLASLt, our own kernels, draws and statistics.
Sequential model() {
  return Sequential{Input{12, 12, 2},
                    Conv2D{8, 3, {.activation = Activation::relu}},
                    BatchNormalization{},
                    MaxPooling2D{2},
                    Flatten{},
                    Dropout{0.25F},
                    Dense{32, {.activation = Activation::gelu}},
                    BatchNormalization{},
                    Dense{5}};
}

// Collects warnings as long as it lives.
class Warnings {
 public:
  Warnings() {
    set_log_sink([this](LogLevel level, std::string_view line) {
      const std::lock_guard lock(mutex_);
      if (level == LogLevel::warning) text_ += std::string(line) + "\n";
    });
  }
  ~Warnings() { set_log_sink({}); }

  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::string text_;  // guarded by mutex_
};

struct Trained {
  Floats sums;
  Floats state;
};

constexpr std::size_t kWhole = std::numeric_limits<std::size_t>::max();

// Each step has two shards of different sizes. Gradients are copied when they are declared ready, at least so many at a
// time.
Trained train(std::size_t least_floats = kWhole) {
  ModelTrainable trained(model(), Adam(0.01F), {SparseCategoricalCrossentropy({.from_logits = true})},
                         {SparseCategoricalAccuracy{}});
  trained.prepare({.count = 1, .threads_per_shard = 1, .device = "cuda:0"});
  trained.initialize(5);
  MemorySpace& memory = trained.memory();
  const std::size_t count = trained.gradient_count();
  const std::shared_ptr<float[]> first = memory.allocate(count), second = memory.allocate(count),
                                 computed = memory.allocate(count);
  const auto feature_count = static_cast<std::size_t>(trained.feature_shape().element_count());
  Trained result;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const Floats features = random_values(static_cast<std::uint64_t>(step), kSamples * feature_count);
    Floats labels(kSamples);
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] = static_cast<float>((i + static_cast<std::size_t>(step)) % 5);
    const auto compute = [&](std::int64_t begin, std::int64_t end, float* gradients) {
      const auto take = [&](std::size_t from, std::size_t to) {
        memory.copy({computed.get() + from, to - from}, {gradients + from, to - from});
      };
      GradientSink sink({computed.get(), count},
                        {.asks_if_finite = true, .on_ready = take, .least_floats = least_floats});
      Floats sums(2);
      const auto from = static_cast<std::size_t>(begin), samples = static_cast<std::size_t>(end - begin);
      trained.compute_gradients({.seed = 7,
                                 .step = step,
                                 .first_sample = begin,
                                 .samples = end - begin,
                                 .batch_samples = kSamples,
                                 .features = std::span(features).subspan(from * feature_count, samples * feature_count),
                                 .targets = std::span(labels).subspan(from, samples)},
                                sink, sums);
      EXPECT_EQ(sink.is_finite(), true);
      result.sums.insert(result.sums.end(), sums.begin(), sums.end());
    };
    compute(0, 16, first.get());
    compute(16, kSamples, second.get());
    memory.add({second.get(), count}, {first.get(), count});
    trained.apply_update({.step = step + 1, .batch_samples = kSamples, .gradients = {first.get(), count}});
  }
  for (const StateSpan& span : trained.state()) {
    Floats values(span.values.size());
    memory.copy_to_host(span.values, values);
    result.state.insert(result.state.end(), values.begin(), values.end());
  }
  return result;
}

using RecordedSteps = LayerTest;

TEST_F(RecordedSteps, GiveTheBitsOfStepsThatAreQueued) {
  ::setenv("HOLDFAST_CUDA_GRAPHS", "off", 1);
  const Trained expected = train();
  ::unsetenv("HOLDFAST_CUDA_GRAPHS");
  Warnings warnings;

  const Trained actual = train();

  EXPECT_EQ(bit_differences(expected.sums, actual.sums), "");
  EXPECT_EQ(bit_differences(expected.state, actual.state), "");
  EXPECT_EQ(warnings.text(), "") << "something could not be recorded";
}

TEST_F(RecordedSteps, GiveTheSameBitsInParts) {
  const Trained expected = train();

  const Trained actual = train(1);

  EXPECT_EQ(bit_differences(expected.sums, actual.sums), "");
  EXPECT_EQ(bit_differences(expected.state, actual.state), "");
}

}  // namespace
}  // namespace holdfast
