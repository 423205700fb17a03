// Compares the plan with what a process takes: the largest resident memory of a child that trains two steps, less what
// it had before. A small training of the same kind comes first, so that libraries and threads are there.

#include "holdfast/train/training_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>

#include "holdfast/holdfast.h"
#include "support/process_status.h"
#include "support/sanitizer.h"

namespace holdfast {
namespace {

// A measurement is made by a process that is started for it alone. One that is only forked has the arenas of all tests
// before this one, and what they left resident there serves a part of the work.
constexpr const char* kMeasurement = "HOLDFAST_TEST_MEASUREMENT";  // its line in this file, and where it is written

struct AskedMeasurement {
  int line = 0;
  int written_to = 0;
};

std::optional<AskedMeasurement> asked_measurement() {
  const char* text = std::getenv(kMeasurement);
  if (text == nullptr) return std::nullopt;
  AskedMeasurement asked;
  std::istringstream(text) >> asked.line >> asked.written_to;
  return asked;
}

[[noreturn]] void begin_this_test_anew(const AskedMeasurement& asked) {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string filter = std::string("--gtest_filter=") + test.test_suite_name() + "." + test.name();
  ::setenv(kMeasurement, (std::to_string(asked.line) + " " + std::to_string(asked.written_to)).c_str(), 1);
  for (const char* name : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_OUTPUT"}) ::unsetenv(name);
  ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
  ::execl("/proc/self/exe", "unit_train", filter.c_str(), nullptr);
  ::_exit(1);
}

[[noreturn]] void write_growth(const std::function<void()>& warm_up, const std::function<void()>& work,
                               int written_to) {
  // Large arrays come from the kernel and go back to it: those of the warm-up shall not serve the work.
  ::mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  // A page of 2 MiB is resident as a whole, and whether there is one depends on what else runs.
  ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  warm_up();
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak begins anew
  const std::size_t before = status_of_process("VmRSS");
  work();
  const std::size_t growth = status_of_process("VmHWM") - before;
  ::_exit(::write(written_to, &growth, sizeof growth) == sizeof growth ? 0 : 1);
}

// What `work` adds to the resident memory at most, after `warm_up` has run. `line` says which measurement of
// the test this is; 0 in the process that was started for another one.
std::size_t growth_of_process(int line, const std::function<void()>& warm_up, const std::function<void()>& work) {
  if (const auto asked = asked_measurement()) {
    if (asked->line == line) write_growth(warm_up, work, asked->written_to);
    return 0;
  }
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) begin_this_test_anew({.line = line, .written_to = ends[1]});
  ::close(ends[1]);
  std::size_t growth = 0;
  EXPECT_EQ(::read(ends[0], &growth, sizeof growth), static_cast<ssize_t>(sizeof growth));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return growth;
}

// Zeros: what is computed does not matter here.
struct TrainedKind {
  Model model;
  std::shared_ptr<const Optimizer> optimizer;
  std::vector<LossHandle> losses;
  std::function<Dataset(std::int64_t samples)> data;
  std::vector<MetricHandle> metrics{};
};

Dataset zeros_of_shapes(std::int64_t samples, const Shape& features, const Shape& targets) {
  return from_tensors(Tensor(features.with_batch(samples)), Tensor(targets.with_batch(samples)));
}

struct MeasuredFit {
  std::int64_t batch = 1;
  int shards = 1;
  int prefetch = 0;
  std::int64_t accumulate = 1;
  std::vector<CallbackHandle> callbacks{};
};

Dataset batches_for_fit(const TrainedKind& kind, const MeasuredFit& training) {
  // Two steps leave enough for all buffers of batches that are loaded ahead.
  const std::int64_t batches = (3 + training.prefetch) * training.accumulate;
  const Dataset data = kind.data(batches * training.batch).batch(training.batch);
  return training.prefetch > 0 ? data.prefetch(training.prefetch) : data;
}

void expect_planned_as_measured(const TrainedKind& kind, const MeasuredFit& training, int line = __builtin_LINE()) {
  if (runs_under_a_sanitizer()) GTEST_SKIP() << "a sanitizer takes memory of its own";
  const Dataset data = batches_for_fit(kind, training);
  const Dataset few = batches_for_fit(kind, {.batch = training.shards, .prefetch = training.prefetch});
  const auto train = [&](const Dataset& batches, std::int64_t accumulate, std::vector<CallbackHandle> callbacks) {
    Replica replica = Replica::alone({.shards = training.shards});
    Trainer trainer(replica, kind.model, *kind.optimizer, kind.losses, kind.metrics);
    trainer.fit(batches, {.steps_per_epoch = 2, .accumulate = accumulate, .callbacks = std::move(callbacks)});
  };
  const std::size_t measured = growth_of_process(
      line, [&] { train(few, 1, {}); }, [&] { train(data, training.accumulate, training.callbacks); });
  if (measured == 0) return;  // it belongs to another process, or has failed
  const TrainingMemory plan = training_memory(
      Replica::alone({.shards = training.shards}), kind.model, *kind.optimizer, kind.losses, data,
      {.accumulate = training.accumulate, .keeps_weights = !training.callbacks.empty(), .metrics = kind.metrics});
  SCOPED_TRACE(testing::Message() << "state " << plan.state << ", gradients " << plan.gradients << ", samples "
                                  << plan.samples << ", passes " << plan.passes);
  const auto planned = static_cast<double>(plan.total());
  EXPECT_GE(planned, 0.9 * static_cast<double>(measured));
  // With several shards one thread may have computed all, before the other one touched its memory.
  if (training.shards == 1) {
    EXPECT_LE(planned, 1.1 * static_cast<double>(measured));
  }
}

Value normalized_convolution(const Value& x, std::int64_t filters, std::int64_t kernel, std::int64_t stride) {
  const Conv2D convolution{filters, kernel, {.strides = stride, .padding = Padding::same, .use_bias = false}};
  return BatchNormalization{}(convolution(x));
}

Value residual_sum(const Value& x, std::int64_t filters, std::int64_t stride) {
  const Value shortcut = stride != 1 || x.shape()[2] != filters ? normalized_convolution(x, filters, 1, stride) : x;
  return relu(normalized_convolution(relu(normalized_convolution(x, filters, 3, stride)), filters, 3, 1) + shortcut);
}

TrainedKind residual_kind() {
  const Value image = input({28, 28, 1});
  const Value x =
      residual_sum(residual_sum(residual_sum(relu(normalized_convolution(image, 8, 3, 2)), 8, 1), 16, 2), 32, 2);
  return {.model = Model(image, Dense{10}(GlobalAveragePooling{}(x))),
          .optimizer = std::make_shared<SGD>(SGDOptions{.learning_rate = 0.05F, .momentum = 0.9F}),
          .losses = {SparseCategoricalCrossentropy{{.from_logits = true}}},
          .data = [](std::int64_t samples) {
            return zeros_of_shapes(samples, {28, 28, 1}, {});
          }};
}

TrainedKind lenet_kind() {
  return {
      .model = Sequential{Input{28, 28, 1}, Conv2D{6, 5, {.padding = Padding::same, .activation = Activation::relu}},
                          MaxPooling2D{2}, Conv2D{16, 5, {.activation = Activation::relu}}, MaxPooling2D{2}, Flatten{},
                          Dense{120, {.activation = Activation::relu}}, Dense{84, {.activation = Activation::relu}},
                          Dense{10}},
      .optimizer = std::make_shared<Adam>(1e-3F),
      .losses = {SparseCategoricalCrossentropy{{.from_logits = true}}},
      .data =
          [](std::int64_t samples) {
            return zeros_of_shapes(samples, {28, 28, 1}, {});
          },
      .metrics = {SparseCategoricalAccuracy{}}};
}

TrainedKind dense_kind(const AdamOptions& options = {}) {
  return {.model = Sequential{Input{784}, Dense{2000, {.activation = Activation::relu}},
                              Dense{1500, {.activation = Activation::relu}}, Dense{10}},
          .optimizer = std::make_shared<Adam>(options),
          .losses = {MeanSquaredError{}},
          .data = [](std::int64_t samples) { return zeros_of_shapes(samples, {784}, {10}); }};
}

// Inputs of integers, two outputs, sample weights, embeddings.
TrainedKind towers_kind() {
  constexpr std::int64_t kUsers = 50'000, kItems = 5'000, kWidth = 32;
  const Value user = input({1}, {.dtype = DType::i32, .name = "user"});
  const Value item = input({1}, {.dtype = DType::u16, .name = "item"});
  const Value traits = input({300}, {.name = "traits"});
  const Value of_user = Dense{200}(Flatten{}(Embedding{kUsers, kWidth}(user)));
  const Value of_item = Dense{200}(Concatenate{}(Flatten{}(Embedding{kItems, kWidth}(item)), traits));
  const Value both = Dropout{0.1F}(of_user * of_item);
  const auto data = [](std::int64_t samples) {
    const auto count = static_cast<std::size_t>(samples);
    return from_tensors(
        {{"user", Tensor({samples, 1}, std::vector<std::int32_t>(count))},
         {"item", Tensor({samples, 1}, std::vector<std::uint16_t>(count))},
         {"traits", Tensor(Shape{samples, 300})}},
        {{"liked", Tensor({samples, 1}, std::vector<std::uint8_t>(count))}, {"stars", Tensor(Shape{samples, 1})}},
        Tensor({samples}, std::vector<float>(count, 1)));
  };
  return {.model = Model({user, item, traits}, {Dense{1, {.name = "liked"}}(both), Dense{1, {.name = "stars"}}(both)}),
          .optimizer = std::make_shared<Adam>(0.01F),
          .losses = {BinaryCrossentropy{{.from_logits = true}}, {MeanSquaredError{}, 0.5F}},
          .data = data};
}

// Scores of 20,000 ids at each of 64 positions are by far its largest array.
TrainedKind language_kind(std::int64_t positions_at_once) {
  constexpr std::int64_t kVocabulary = 20'000, kPositions = 64, kWidth = 16;
  const ReversibleEmbedding words{kVocabulary, kWidth};
  const Value ids = input({kPositions}, {.dtype = DType::i32, .name = "ids"});
  const auto data = [](std::int64_t samples) {
    const std::vector<std::int32_t> zeros(static_cast<std::size_t>(samples * kPositions));
    return from_tensors({{"ids", Tensor({samples, kPositions}, zeros)}}, {{"y", Tensor({samples, kPositions}, zeros)}});
  };
  return {.model = Model(ids, words.reverse(Dense{kWidth}(words(ids)))),
          .optimizer = std::make_shared<Adam>(0.01F),
          .losses = {SparseCategoricalCrossentropy{{.from_logits = true, .positions_at_once = positions_at_once}}},
          .data = data,
          .metrics = {SparseCategoricalAccuracy{}, metrics::Perplexity{{.from_logits = true}}}};
}

std::size_t passes_of_language(std::int64_t positions_at_once) {
  const TrainedKind kind = language_kind(positions_at_once);
  return training_memory(Replica::alone(), kind.model, *kind.optimizer, kind.losses, kind.data(8).batch(8)).passes;
}

std::optional<ErrorCode> code_of_refused_plan(const Dataset& data, const TrainingMemoryOptions& options = {}) {
  const TrainedKind kind = dense_kind();
  try {
    training_memory(Replica::alone(), kind.model, *kind.optimizer, kind.losses, data, options);
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

}  // namespace

TEST(TrainingMemory, IsWithinATenthOfWhatAProcessTakesForResidualNetworks) {
  expect_planned_as_measured(residual_kind(), {.batch = 512});
  expect_planned_as_measured(residual_kind(), {.batch = 1024, .shards = 4, .prefetch = 2});
}

TEST(TrainingMemory, IsWithinATenthOfWhatAProcessTakesForLeNet) {
  expect_planned_as_measured(lenet_kind(), {.batch = 1000});
  expect_planned_as_measured(lenet_kind(), {.batch = 1200, .shards = 4, .prefetch = 3});
}

TEST(TrainingMemory, IsWithinATenthOfWhatAProcessTakesForDenseLayers) {
  expect_planned_as_measured(dense_kind(), {.batch = 64});
  expect_planned_as_measured(dense_kind(), {.batch = 64, .shards = 2});
  expect_planned_as_measured(dense_kind({.use_ema = true}), {.batch = 16, .accumulate = 4});
  // The second communicator of such steps has blocks of its own.
  expect_planned_as_measured(dense_kind(), {.batch = 16, .shards = 2, .accumulate = 3});
}

TEST(TrainingMemory, IsWithinATenthOfWhatAProcessTakesForKeptWeightsAndClipping) {
  const std::vector<CallbackHandle> keeps_weights = {EarlyStopping{{.monitor = "loss", .restore_best_weights = true}}};
  expect_planned_as_measured(dense_kind({.global_clip_norm = 1.0F}), {.batch = 64});
  expect_planned_as_measured(dense_kind(), {.batch = 64, .callbacks = keeps_weights});
  expect_planned_as_measured(dense_kind({.global_clip_norm = 1.0F}), {.batch = 64, .callbacks = keeps_weights});
}

TEST(TrainingMemory, IsWithinATenthOfWhatAProcessTakesForSeveralInputsAndSampleWeights) {
  expect_planned_as_measured(towers_kind(), {.batch = 4000});
  expect_planned_as_measured(towers_kind(), {.batch = 16'000, .shards = 2, .prefetch = 1});
}

TEST(TrainingMemory, IsWithinATenthOfWhatAProcessTakesForScoresInTiles) {
  expect_planned_as_measured(language_kind(100), {.batch = 8});
  expect_planned_as_measured(language_kind(64), {.batch = 8, .shards = 2});
}

// The scores of 8 x 64 positions and their gradient, less those of 64 positions. The sum of the kernel's gradient and a
// part of it come in their place.
TEST(TrainingMemory, FallsByTheScoresThatAreNotThereAtOnce) {
  constexpr std::size_t kRow = 20'000 * sizeof(float);
  const std::size_t saved = std::size_t{2} * (512 - 64) * kRow;
  const std::size_t added = std::size_t{2} * 16 * kRow;

  const std::size_t whole = passes_of_language(0), tiles = passes_of_language(64);

  // Small arrays and the workspace of other products.
  EXPECT_NEAR(static_cast<double>(whole) - static_cast<double>(tiles), static_cast<double>(saved - added),
              0.05 * saved);
}

TEST(TrainingSummary, EndsWithTheMemoryOfFit) {
  const Sequential model{Input{256}, Dense{256}};
  const Replica replica = Replica::alone({.shards = 4});
  const Dataset data = zeros_of_shapes(64, {256}, {256}).batch(16);

  const std::string text = training_summary(replica, model, Adam{}, {MeanSquaredError{}}, data);

  EXPECT_TRUE(text.starts_with(model.summary()));
  EXPECT_NE(text.find("Memory of fit() with adam and batches of 16 samples in 4 shards"), std::string::npos);
  // The weights, both slots of Adam, and the copy that the model has after fit(): 4 x 257 x 256 floats.
  EXPECT_NE(text.find("state              1.0 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("saving             0.0 MiB"), std::string::npos) << text;
  const TrainingMemory memory = training_memory(replica, model, Adam{}, {MeanSquaredError{}}, data);
  EXPECT_NE(text.find(std::to_string(memory.total() / (1024 * 1024)) + "."), std::string::npos) << text;
}

TEST(TrainingMemory, RefusesDataWithoutBatchesAndNoBatchOfAStep) {
  const Dataset data = dense_kind().data(8);

  EXPECT_EQ(code_of_refused_plan(data), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of_refused_plan(data.batch(4), {.accumulate = 0}), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of_refused_plan(data.batch(4), {.accumulate = std::int64_t{1} << 40}), ErrorCode::invalid_argument);
}

}  // namespace holdfast
