// Trainings on a pretended device, whose arithmetic is the CPU's. Their results must be those of the CPU.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "holdfast/base/deadline.h"
#include "holdfast/base/log.h"
#include "holdfast/holdfast.h"
#include "support/program.h"
#include "train/state/snapshot.h"
#include "train/step/model_trainable.h"
#include "unit/nn/support/function_layer.h"
#include "unit/nn/support/running_sum.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

// A function of the pretended device's library; null before that is loaded.
template <typename Function>
Function* function_of_the_library(const char* name) {
  void* const library = ::dlopen(built_program("libpretended_device.so").c_str(), RTLD_NOW | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}

// How often the pretended device has repeated recorded work.
int repeats() {
  const auto repeats = function_of_the_library<int()>("pretended_repeats");
  return repeats == nullptr ? 0 : repeats();
}

// States in memory that outlives the process, by step.
class States final : public NoSupervision {
 public:
  using Image = std::vector<std::byte>;

  void keep_in_memory(std::int64_t step, std::size_t bytes, const Write& write, const Accepts& accepts) override {
    Image image(bytes);
    write(0, image);
    if (accepts(image)) add(step, image);
  }
  std::optional<OutlivingMemory> begin_in_memory(std::int64_t step, std::size_t bytes) override {
    const auto memory = std::make_shared<std::vector<float>>(bytes / sizeof(float) + 1);
    const std::span<std::byte> all = std::as_writable_bytes(std::span(*memory));
    const std::span<std::byte> image = all.first(bytes);
    const auto keep = [this, step, image](const Accepts& accepts) {
      const bool is_accepted = accepts(image);
      if (is_accepted) add(step, {image.begin(), image.end()});
      return is_accepted;
    };
    return OutlivingMemory{.bytes = image, .all = all, .mapping = memory, .keep = keep};
  }

  std::map<std::int64_t, Image> all() {
    const std::lock_guard lock(mutex_);
    return images_;
  }

 private:
  void add(std::int64_t step, const Image& image) {
    const std::lock_guard lock(mutex_);
    images_[step] = image;
  }

  std::mutex mutex_;
  std::map<std::int64_t, Image> images_;  // guarded by mutex_
};

// A clock that moves by a second in each step, by `once` when memory for states is first prepared, and by `each_time`
// when a state is kept.
class SlowStates final : public NoSupervision {
 public:
  using Seconds = std::chrono::duration<int>;
  SlowStates(Seconds once, Seconds each_time) : once_(once), each_time_(each_time) {}

  std::chrono::steady_clock::time_point now() const {
    return std::chrono::steady_clock::time_point(Seconds(seconds_.load()));
  }
  // The steps whose states were kept, once training is over.
  const std::vector<std::int64_t>& steps() const { return steps_; }

  void enter(TrainingPhase phase, std::int64_t) override {
    if (phase != TrainingPhase::computing) return;
    // Real time that passes meanwhile would count as time of the copy.
    const Deadline deadline = Deadline::after(std::chrono::seconds(30));
    while (is_travelling_ && !deadline.has_passed()) std::this_thread::yield();
    take(Seconds(1));
  }
  void prepare_in_memory(std::size_t bytes) override {
    if (memory_.size() == bytes / sizeof(float) + 1) return;
    memory_.resize(bytes / sizeof(float) + 1);
    if (steps_.empty()) take(once_);
  }
  void keep_in_memory(std::int64_t step, std::size_t bytes, const Write&, const Accepts&) override {
    prepare_in_memory(bytes);
    take(each_time_);
    steps_.push_back(step);
  }
  std::optional<OutlivingMemory> begin_in_memory(std::int64_t step, std::size_t bytes) override {
    prepare_in_memory(bytes);
    steps_.push_back(step);
    is_travelling_ = true;
    const std::span<std::byte> all = std::as_writable_bytes(std::span(memory_)).first(bytes);
    const auto keep = [this, all](const Accepts& accepts) {
      take(each_time_);
      const bool is_accepted = accepts(all);
      is_travelling_ = false;
      return is_accepted;
    };
    return OutlivingMemory{.bytes = all, .all = all, .mapping = nullptr, .keep = keep};
  }

 private:
  void take(Seconds time) { seconds_ += time.count(); }

  const Seconds once_;
  const Seconds each_time_;
  std::atomic<int> seconds_ = 0;
  std::atomic<bool> is_travelling_ = false;
  std::vector<float> memory_;
  std::vector<std::int64_t> steps_;
};

std::vector<std::int64_t> steps_kept(const std::string& device, SlowStates::Seconds once,
                                     SlowStates::Seconds each_time) {
  const TemporaryFolder folder;
  const auto states = std::make_shared<SlowStates>(once, each_time);
  const ThreadRun run = {
      .replicas = 1, .run_directory = folder.path(), .supervision = states, .device = device, .now = [states] {
        return states->now();
      }};
  outcomes_of(run, [](Replica& replica) { return train_small(replica, {}, 10); });
  return states->steps();
}

std::vector<char> content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class TrainerOnADevice : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("HOLDFAST_CUDA_LIBRARY", built_program("libpretended_device.so").c_str(), 1);
  }
  static void TearDownTestSuite() { ::unsetenv("HOLDFAST_CUDA_LIBRARY"); }

  const Outcome on_the_cpu_ = outcome_of({.replicas = 1});
};

TEST_F(TrainerOnADevice, LogsWhereTheProgramDoes) {
  static_cast<void>(outcome_of({.replicas = 1, .device = "cuda:0"}));
  std::mutex mutex;
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) {
    const std::lock_guard lock(mutex);
    lines.emplace_back(line);
  });

  function_of_the_library<void(const char*)>("pretended_warning")("something is slow");

  set_log_sink({});
  EXPECT_EQ(lines, std::vector<std::string>{"something is slow"});
}

TEST_F(TrainerOnADevice, GivesTheBitsOfTheCpuAndRepeatsItsSteps) {
  const int before = repeats();

  const Outcome outcome = outcome_of({.replicas = 1, .device = "cuda:0"});

  expect_equal(outcome, on_the_cpu_);
  // Each step has four shards, which take two slots. The first two runs of each key are not repeated.
  EXPECT_GT(repeats() - before, 2 * outcome.step);
}

TEST_F(TrainerOnADevice, GivesTheBitsOfTheCpuWithASingleShard) {
  const Outcome expected = outcome_of({.replicas = 1, .shards = 1});

  expect_equal(outcome_of({.replicas = 1, .shards = 1, .device = "cuda:0"}), expected);
}

TEST_F(TrainerOnADevice, GivesTheSameBitsWhereNothingIsRepeated) {
  ::setenv("HOLDFAST_CUDA_GRAPHS", "off", 1);
  const int before = repeats();

  expect_equal(outcome_of({.replicas = 1, .device = "cuda:0"}), on_the_cpu_);

  EXPECT_EQ(repeats(), before);
  ::unsetenv("HOLDFAST_CUDA_GRAPHS");
}

TEST_F(TrainerOnADevice, NeedsNoWatchdog) {
  Replica replica = Replica::alone({.seed = 3, .shards = 4, .device = "cuda:1"});

  expect_equal(train_small(replica), on_the_cpu_);
}

TEST_F(TrainerOnADevice, RefusesADeviceThatDoesNotExist) {
  for (const std::string device : {"cuda:4", "cuda:", "cuda:x", "cpu:0", "gpu", ""}) {
    EXPECT_THROW(static_cast<void>(Replica::alone({.device = device})), Error) << device;
  }
}

// Wherever its samples lie when the step has failed.
TEST_F(TrainerOnADevice, NamesTheSampleWhoseInputIsNotFinite) {
  Tensor features{Shape{40, 4}};
  features.sample(15)[3] = std::nanf("");
  const Dataset data = from_tensors(std::move(features), Tensor{Shape{40, 1}}).shuffle();
  for (const Dataset& each : {data.batch(10), data.batch(10).prefetch(2), data.keep_on_device().batch(10)}) {
    Replica replica = Replica::alone({.shards = 4, .device = "cuda:0"});
    Trainer trainer(replica, Sequential{Input{4}, Dense{1}}, SGD(0.1F), MeanSquaredError());
    std::string sentence;

    try {
      trainer.fit(each, {.when_not_finite = WhenNotFinite::stop});
    } catch (const Error& error) {
      sentence = error.what();
    }

    EXPECT_NE(sentence.find("; sample 15 of the data set has nan in its input"), std::string::npos) << sentence;
  }
}

TEST_F(TrainerOnADevice, KeepsTheStatesOfTheCpuInMemory) {
  const auto states_of = [](const std::string& device) {
    const TemporaryFolder folder;
    const auto states = std::make_shared<States>();
    outcome_of({.replicas = 1,
                .run_directory = folder.path(),
                .supervision = states,
                .device = device,
                .memory_snapshot_every = 3});
    return states->all();
  };

  const std::map<std::int64_t, States::Image> expected = states_of("cpu");

  EXPECT_EQ(expected.size(), 3U) << "fit() is not over after the last step";
  EXPECT_TRUE(states_of("cuda:0") == expected);
}

// A long delay would leave a run without protection for hours.
TEST_F(TrainerOnADevice, DoesNotDelayTheSecondStateInMemoryByTheCostOfTheFirst) {
  for (const std::string device : {"cpu", "cuda:0"}) {
    EXPECT_GT(steps_kept(device, std::chrono::minutes(10), std::chrono::seconds(0)).size(), 2U) << device;
    EXPECT_EQ(steps_kept(device, std::chrono::minutes(0), std::chrono::minutes(10)), std::vector<std::int64_t>{1})
        << device << ": what each of them takes counts";
  }
}

TEST_F(TrainerOnADevice, SavesTheFilesOfTheCpu) {
  const TemporaryFolder here, there;

  outcome_of({.replicas = 1, .run_directory = here.path()}, checkpoint_every_two);
  outcome_of({.replicas = 1, .run_directory = there.path(), .device = "cuda:0"}, checkpoint_every_two);

  const std::vector<std::string> files = savepoint_files(here.path());
  EXPECT_EQ(savepoint_files(there.path()), files);
  ASSERT_FALSE(files.empty());
  for (const std::string& file : files) EXPECT_TRUE(content_of(here / file) == content_of(there / file)) << file;
}

// The samples of this data set are not in an array.
TEST_F(TrainerOnADevice, GivesTheBitsOfTheCpuWithSamplesThatAreLoadedAhead) {
  const auto train = [](Replica& replica) {
    const auto add_noise = [](Sample sample, Random& random) { sample.features[0] += random.uniform(); };
    Trainer trainer(replica, small_model(), Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
    trainer.fit(small_data().shuffle().map(add_noise, "noise").batch(10).prefetch(2), {.epochs = 3});
    return Outcome{trainer.weights_digest().hex(), trainer.step(), {}, {}, {}};
  };

  const Outcome expected = outcomes_of({.replicas = 1}, train)[0];

  expect_equal(outcomes_of({.replicas = 1, .device = "cuda:0"}, train)[0], expected);
}

TEST_F(TrainerOnADevice, GivesTheBitsOfTheCpuWithSchedulesAndClipping) {
  for (const auto& optimizer : clipping_optimizers()) {
    SCOPED_TRACE(optimizer->configuration());
    const auto train = [&](Replica& replica) { return train_with(replica, *optimizer); };
    const Outcome expected = outcomes_of({.replicas = 1}, train)[0];

    expect_equal(outcomes_of({.replicas = 1, .device = "cuda:0"}, train)[0], expected);
  }
}

// The small data as flat rows with targets of 0 and 1, and a weight for each sample.
Dataset weighted_rows() {
  constexpr std::int64_t kRows = 29;
  Tensor x(Shape{kRows, 3}), y(Shape{kRows, 2}), weights(Shape{kRows});
  Random random(7, Purpose::user, 0, 0);
  for (float& value : x.values()) value = random.uniform();
  for (float& value : y.values()) value = random.uniform() < 0.5F ? 0.0F : 1.0F;
  for (std::int64_t i = 0; i < kRows; ++i) weights.values()[i] = i % 3 == 0 ? 0 : random.uniform();
  return from_tensors({{"x", x}}, {{"y", y}}, weights).batch(8);
}

Outcome train_weighted(Replica& replica, const Loss& loss, const std::vector<MetricHandle>& metrics) {
  const Dataset data = weighted_rows();
  Trainer trainer(replica, Sequential{Input{3}, Dense{2, {.activation = Activation::sigmoid}}}, Adam(0.02F), loss,
                  metrics);
  const FitResult fit = trainer.fit(data, {.epochs = 3});
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, trainer.evaluate(data), fit.history};
}

MetricFunction precision() {
  return {"precision",
          [](const Value& outputs, const Value& targets) {
            const Value positive = less(0.5F, outputs);
            return std::vector<Value>{positive * targets, positive};
          },
          [](std::span<const double> sums, double) { return sums[0] / sums[1]; }};
}

TEST_F(TrainerOnADevice, GivesTheBitsOfTheCpuWithALossAndAMetricOfValuesAndWeights) {
  const LossFunction focal("focal", [](const Value& p, const Value& t) {
    const Value right = t * p + (1.0F - t) * (1.0F - p);
    return -square(1.0F - right) * logarithm(right);
  });
  const auto train = [&](Replica& replica) {
    return train_weighted(replica, focal, {precision(), BinaryAccuracy{}, MeanAbsoluteError{}});
  };
  const Outcome expected = outcomes_of({.replicas = 1}, train)[0];
  const int before = repeats();

  expect_equal(outcomes_of({.replicas = 1, .device = "cuda:0"}, train)[0], expected);

  EXPECT_GT(repeats() - before, 0) << "the steps are recorded";
}

TEST_F(TrainerOnADevice, GivesTheBitsOfTheCpuWithWeightsAndABuiltInLoss) {
  const auto train = [](Replica& replica) { return train_weighted(replica, BinaryCrossentropy{}, {BinaryAccuracy{}}); };

  expect_equal(outcomes_of({.replicas = 1, .device = "cuda:0"}, train)[0], outcomes_of({.replicas = 1}, train)[0]);
}

// As an application writes one that functions of values cannot describe.
class AbsoluteError final : public Loss {
 public:
  std::string name() const override { return "absolute_error"; }
  std::string configuration() const override { return R"({"kind":"absolute_error"})"; }
  std::unique_ptr<Loss> clone() const override { return std::make_unique<AbsoluteError>(*this); }
  Shape target_shape(const Shape& output) const override { return output; }
  float evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t, float scale,
                 std::span<float> gradient) const override {
    double sum = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) sum += std::abs(outputs[i] - targets[i]);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = outputs[i] < targets[i] ? -scale : scale;
    return static_cast<float>(sum);
  }
};

class Largest final : public Metric {
 public:
  Largest() : Metric("largest") {}
  std::string configuration() const override { return R"({"kind":"largest"})"; }
  std::unique_ptr<Metric> clone() const override { return std::make_unique<Largest>(*this); }
  float sum(std::span<const float> outputs, std::span<const float>, std::int64_t samples) const override {
    return *std::max_element(outputs.begin(), outputs.end()) * static_cast<float>(samples);
  }
};

TEST_F(TrainerOnADevice, ComputesALossWithoutDeviceCodeOnTheHostAndSaysSoOnce) {
  const auto train = [](Replica& replica) { return train_weighted(replica, AbsoluteError{}, {Largest{}}); };
  const Outcome expected = outcomes_of({.replicas = 1}, train)[0];
  std::mutex mutex;
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) {
    const std::lock_guard lock(mutex);
    if (line.find("the host computes") != std::string_view::npos) lines.emplace_back(line);
  });

  const Outcome outcome = outcomes_of({.replicas = 1, .device = "cuda:0"}, train)[0];

  set_log_sink({});
  expect_equal(outcome, expected);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find(R"(loss "absolute_error" and metric "largest" for cuda:0)"), std::string::npos) << lines[0];
}

TEST_F(TrainerOnADevice, GivesTheBitsOfTheCpuWithPositions) {
  const Dataset data = from_tensors({{"x", Tensor(Shape{2, 2, 3}, {1, 2, 3, 0, 0, 0, 5, 1, 1, 2, 7, 1})}},
                                    {{"y", Tensor(Shape{2, 2}, {2, 0, 1, 1})}}, Tensor(Shape{2, 2}, {1, 0, 3, 0.5F}));
  const auto train = [&](Replica& replica) {
    Trainer trainer(replica, Sequential{Input{2, 3}, Dense{3}}, SGD(0.1F),
                    SparseCategoricalCrossentropy{{.from_logits = true}}, {SparseCategoricalAccuracy{}});
    const FitResult fit = trainer.fit(data.batch(2), {.epochs = 3});
    return Outcome{trainer.weights_digest().hex(), trainer.step(), fit.results, {}, fit.history};
  };

  expect_equal(outcomes_of({.replicas = 1, .device = "cuda:0"}, train)[0], outcomes_of({.replicas = 1}, train)[0]);
}

TEST_F(TrainerOnADevice, GivesTheBitsOfTheCpuWithScoresInTiles) {
  const Tensor x(Shape{2, 2, 3}, {1, 2, 3, 0, 0, 0, 5, 1, 1, 2, 7, 1});
  const NamedTensor y{"y", Tensor(Shape{2, 2}, {2, 0, 1, 1})};
  const auto trained = [&](const ThreadRun& run, const Dataset& data, std::optional<std::int64_t> ignored) {
    return outcomes_of(run, [&](Replica& replica) {
      Trainer trainer(
          replica, Sequential{Input{2, 3}, Dense{4, {.activation = Activation::tanh}}, Dense{3}}, SGD(0.1F),
          SparseCategoricalCrossentropy{{.from_logits = true, .ignore_class = ignored, .positions_at_once = 3}},
          {SparseCategoricalAccuracy{}, metrics::Perplexity{{.from_logits = true}}});
      const FitResult fit = trainer.fit(data.batch(2), {.epochs = 3});
      return Outcome{trainer.weights_digest().hex(), trainer.step(), fit.results, trainer.evaluate(data.batch(2)),
                     fit.history};
    })[0];
  };
  for (const Dataset& data : {from_tensors({{"x", x}}, {y}), from_tensors({{"x", x}}, {y}, Tensor(Shape{2}, {2, 0.5F})),
                              from_tensors({{"x", x}}, {y}, Tensor(Shape{2, 2}, {1, 0, 3, 0.5F}))}) {
    for (const std::optional<std::int64_t> ignored : {std::optional<std::int64_t>(), {1}}) {
      const ThreadRun on_device = {.replicas = 1, .shards = 1, .device = "cuda:0"};

      expect_equal(trained(on_device, data, ignored), trained({.replicas = 1, .shards = 1}, data, ignored));
    }
  }
}

TEST_F(TrainerOnADevice, TakesAModelWithoutParameters) {
  const Outcome expected = outcomes_of({.replicas = 1}, train_without_parameters)[0];

  expect_equal(outcomes_of({.replicas = 1, .device = "cuda:0"}, train_without_parameters)[0], expected);
}

// Each array takes several pieces of the file.
TEST_F(TrainerOnADevice, LoadsASavepointWhileItIsBeingRead) {
  const TemporaryFolder folder;
  const auto make = [](const std::string& device) {
    auto model =
        std::make_unique<ModelTrainable>(Sequential{Input{600}, Dense{1'500}}, Adam(1e-3F),
                                         std::vector<LossHandle>{MeanSquaredError{}}, std::vector<MetricHandle>{});
    model->prepare({.device = device});
    model->initialize(device == "cpu" ? 1 : 2);
    return model;
  };
  const auto on_cpu = make("cpu"), on_device = make("cuda:0");
  TrainState at_seven;
  at_seven.graph = "{}";
  at_seven.configuration = "{}";
  at_seven.step = 7;
  const Snapshot saved = take_snapshot(at_seven, *on_cpu);
  write_savepoint(posix_file_system(), folder / "file.h5", saved);

  const TrainState state =
      load_savepoint(posix_file_system(), folder / "file.h5", *on_device, [](const TrainState&) {});

  EXPECT_EQ(state.step, 7);
  const Snapshot loaded = take_snapshot(state, *on_device);
  ASSERT_EQ(loaded.arrays.size(), saved.arrays.size());
  for (std::size_t i = 0; i < saved.arrays.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(loaded.arrays[i].values, saved.arrays[i].values)) << saved.arrays[i].name;
  }
}

// Records gradients when they are declared ready, while the rest is still being computed.
class PassesInParts : public TrainerOnADevice {
 protected:
  using Range = std::pair<std::size_t, std::size_t>;

  PassesInParts()
      : model_(Sequential{Input{2}, Dense{8}, Dense{16}, Dense{24}}, Adam(1e-3F),
               std::vector<LossHandle>{MeanSquaredError{}}, std::vector<MetricHandle>{}) {
    model_.prepare({.device = "cuda:0"});
    model_.initialize(1);
    gradients_ = model_.memory().allocate(model_.gradient_count());
  }

  std::span<float> gradients() { return {gradients_.get(), model_.gradient_count()}; }

  // The gradients that were declared ready, with their values at that moment.
  std::vector<Range> run(std::size_t least_floats, std::vector<float>* seen = nullptr) {
    model_.memory().copy_from_host(std::vector<float>(model_.gradient_count(), 77), gradients());
    std::vector<Range> ranges;
    std::vector<float> arrived(model_.gradient_count());
    const auto look = [&](std::size_t begin, std::size_t end) {
      ranges.emplace_back(begin, end);
      model_.memory().copy_to_host(gradients().subspan(begin, end - begin),
                                   std::span(arrived).subspan(begin, end - begin));
    };
    GradientSink sink(gradients(), {.on_ready = look, .least_floats = least_floats});
    std::vector<float> sums(model_.sum_names().size());
    model_.compute_gradients({.samples = 6, .batch_samples = 6, .features = features_, .targets = targets_}, sink,
                             sums);
    if (seen != nullptr) *seen = arrived;
    return ranges;
  }

  ModelTrainable model_;
  std::shared_ptr<float[]> gradients_;
  const std::vector<float> features_ = std::vector<float>(12, 0.5F);
  const std::vector<float> targets_ = std::vector<float>(144, 1);
};

// Another number of ranks makes other buckets, and so other parts. A recording is for its own parts alone.
TEST_F(PassesInParts, AreRecordedForWhereTheyAreCut) {
  std::vector<float> expected;
  run(model_.gradient_count(), &expected);
  std::set<std::vector<Range>> cuts;

  for (int round = 0; round < 3; ++round) {
    // The cut is after the last layer or after the last two, so there are two parts. A repeated key is recorded.
    for (const std::size_t least : {400, 400, 500, 500}) {
      std::vector<float> seen;
      const std::vector<Range> ranges = run(least, &seen);
      EXPECT_EQ(ranges.size(), 2U);
      EXPECT_EQ(seen, expected) << "in parts of " << least << " floats at least";
      cuts.insert(ranges);
    }
  }
  EXPECT_EQ(cuts.size(), 2U);
}

// A pretended device runs what is queued on the host, so the function for the host can serve it.
class SumOnDevices final : public CustomOperation {
 public:
  explicit SumOnDevices(bool is_reversed) : sum_(is_reversed), is_reversed_(is_reversed) {}
  std::string name() const override { return "test.sum_on_devices"; }
  std::vector<ValueSpec> infer(std::span<const ValueSpec> inputs) const override { return sum_.infer(inputs); }
  std::size_t scratch_bytes(std::span<const ValueSpec>, std::int64_t) const override { return 64; }
  void run(const OperationArrays& arrays) const override { sum_.run(arrays); }
  bool runs_on_devices() const override { return true; }
  void queue_on_device(const OperationArrays& arrays, void*) const override {
    EXPECT_EQ(arrays.scratch.size(), 64U);
    arrays.scratch.front() = std::byte{1};
    sum_.run(arrays);
  }
  std::vector<std::optional<Value>> gradient(const OperationGradient& at) const override {
    return {apply_custom(std::make_shared<const SumOnDevices>(!is_reversed_), {*at.output_gradients[0]})[0]};
  }

 private:
  const RunningSum sum_;
  const bool is_reversed_;
};

TEST_F(TrainerOnADevice, RunsTheDeviceFunctionOfAnOperationOfAnApplication) {
  const auto train = [](Replica& replica) {
    const FunctionLayer sum(
        [](const Value& x) { return apply_custom(std::make_shared<const SumOnDevices>(false), {x})[0]; });
    const Sequential model{Input{6, 6, 1}, Flatten{}, Dense{12}, sum, Dense{3}, sum};
    Trainer trainer(replica, model, Adam(0.01F), SparseCategoricalCrossentropy({.from_logits = true}));
    const FitResult fit = trainer.fit(small_data().shuffle().batch(10), {.epochs = 2});
    return Outcome{trainer.weights_digest().hex(), trainer.step(), fit.results, {}, fit.history};
  };
  const int before = repeats();

  const Outcome outcome = outcomes_of({.replicas = 1, .device = "cuda:0"}, train)[0];

  expect_equal(outcome, outcomes_of({.replicas = 1}, train)[0]);
  EXPECT_GT(repeats(), before);
}

TEST_F(TrainerOnADevice, RefusesAnOperationOfAnApplicationInASentence) {
  const auto train = [](Replica& replica) {
    Trainer trainer(replica, Sequential{Input{2}, FunctionLayer(running_sum)}, SGD(0.1F), MeanSquaredError{});
    trainer.fit(from_tensors(Tensor(Shape{8, 2}), Tensor(Shape{8, 2})).batch(4), {.epochs = 1});
    return Outcome{};
  };

  try {
    outcomes_of({.replicas = 1, .device = "cuda:0"}, train);
    ADD_FAILURE() << "trains on a device with a function for the host";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    const std::string expected = "\"test.running_sum\" runs on the host, and the model runs on cuda:0";
    EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace holdfast
