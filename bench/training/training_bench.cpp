// Times steps of LeNet-5 (batch 128, Adam) in one process, through fit(), with data loading.

#include <benchmark/benchmark.h>

#include <chrono>
#include <span>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/core/memory_space.h"
#include "holdfast/holdfast.h"

namespace holdfast {
namespace {

constexpr std::int64_t kBatch = 128;
constexpr std::int64_t kSteps = 40;

// Made once and kept in memory, so no file is part of the measurement.
Dataset noise() {
  Tensor features(Shape{kBatch * kSteps, 28, 28, 1});
  Tensor targets(Shape{kBatch * kSteps});
  Random random(1, Purpose::synthetic_data, 0, 0);
  for (float& value : features.values()) value = random.uniform();
  for (float& value : targets.values()) value = static_cast<float>(random.below(10));
  return from_tensors(std::move(features), std::move(targets));
}

Sequential lenet5() {
  return Sequential{Input{28, 28, 1},
                    Conv2D{6, 5, {.padding = Padding::same, .activation = Activation::relu}},
                    MaxPooling2D{2},
                    Conv2D{16, 5, {.activation = Activation::relu}},
                    MaxPooling2D{2},
                    Flatten{},
                    Dense{120, {.activation = Activation::relu}},
                    Dense{84, {.activation = Activation::relu}},
                    Dense{10}};
}

// One epoch is trained before the measurement, since the first one also makes what is made only once.
void measure_epochs(benchmark::State& state, Replica replica, const FitOptions& options) {
  const Dataset data = noise().batch(kBatch).prefetch(2);
  Trainer trainer(replica, lenet5(), Adam(1e-3F), SparseCategoricalCrossentropy({.from_logits = true}));
  trainer.fit(data, options);
  for (auto _ : state) trainer.fit(data, options);
  state.SetItemsProcessed(state.iterations() * kBatch * kSteps);
  state.counters["per_step"] = benchmark::Counter(static_cast<double>(state.iterations() * kSteps),
                                                  benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// Argument: the number of threads of the only shard.
void Lenet5Epoch(benchmark::State& state) {
  measure_epochs(state, Replica::alone({.threads_per_shard = static_cast<int>(state.range(0))}), {});
}
BENCHMARK(Lenet5Epoch)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();

// Argument: steps between checks of gradients; 0: no checks. There is one shard, which the only replica computes twice.
void Lenet5EpochChecked(benchmark::State& state) {
  measure_epochs(state, Replica::alone(), {.check_gradients = {.every = state.range(0)}});
}
BENCHMARK(Lenet5EpochChecked)
    ->Arg(0)
    ->Arg(1)
    ->Arg(500)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

// What a memory snapshot of 104 MB costs a step, and how much of it is the comparison of replicas: a digest, and a
// check that all numbers are finite. Snapshots are so frequent that they take 1/200 of the time.
void SnapshotIntoMemory(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kFloats = 26'000'000;
  std::vector<float> arena(kFloats);
  Random random(1, Purpose::synthetic_data, 0, 0);
  for (float& value : arena) value = random.normal();
  std::vector<float> kept(kFloats);
  const std::span<const float> array = arena;
  Clock::duration compared{}, all{};
  for (auto _ : state) {
    const Clock::time_point begin = Clock::now();
    benchmark::DoNotOptimize(host_memory().digest_of(std::span(&array, 1)));
    benchmark::DoNotOptimize(host_memory().is_finite(array));
    compared += Clock::now() - begin;
    host_memory().copy(array, kept);
    benchmark::DoNotOptimize(digest(std::as_bytes(std::span(kept))));
    all += Clock::now() - begin;
  }
  // A share, since the absolute times depend on the machine.
  const double part = std::chrono::duration<double>(compared) / std::chrono::duration<double>(all);
  state.counters["compared_part"] = part;
  state.counters["compared_percent_of_training"] = 100 * part / 200;
}
BENCHMARK(SnapshotIntoMemory)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace holdfast
