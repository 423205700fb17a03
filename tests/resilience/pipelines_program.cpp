// Trains a small model for a few epochs on one of 24 pipelines of data, which have most sources and stages among them,
// with all callbacks but ProgressLine, some by turns. For deaths at any moment: what is left depends on the pipeline
// alone.
//
//   pipelines_program --make DATA                                 writes the files that pipelines read
//   pipelines_program --run-dir DIR --data DATA --pipeline N      N from 0 to 23
//                     [--replicas 2] [--epochs 10] [--inject FAULT]...

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "holdfast/holdfast.h"
#include "unit/data/support/array_writer.h"
#include "unit/data/support/picture_writer.h"

namespace {

using namespace holdfast;

constexpr std::int64_t kSamples = 72;
constexpr std::int64_t kFeatures = 6;

// ---- Files

float feature(std::int64_t sample, std::int64_t column) {
  Random random(11, Purpose::user, 0, static_cast<std::uint64_t>(sample * kFeatures + column));
  return random.normal();
}

// What models learn: the sum of the features, bent.
float target(std::int64_t sample) {
  float sum = 0;
  for (std::int64_t column = 0; column < kFeatures; ++column) sum += feature(sample, column);
  return std::tanh(sum);
}

void write_table(const std::string& path) {
  std::ofstream file(path);
  file << "size,height,town,price\n";
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const std::array<const char*, 3> towns = {"ash", "elm", "oak"};
    file << feature(i, 0) << ',' << feature(i, 1) << ',' << towns[static_cast<std::size_t>(i % 3)] << ',' << target(i)
         << '\n';
  }
}

void write_arrays(const std::string& folder) {
  std::vector<float> features;
  std::vector<float> targets;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    for (std::int64_t column = 0; column < kFeatures; ++column) features.push_back(feature(i, column));
    targets.push_back(target(i));
  }
  const std::string shape_of_features = "(" + std::to_string(kSamples) + ", " + std::to_string(kFeatures) + ")";
  const std::string shape_of_targets = "(" + std::to_string(kSamples) + ", 1)";
  const std::string x = text_of_elements(features);
  const std::string y = text_of_elements(targets);
  write_npy(folder + "/x.npy", "<f4", shape_of_features, x);
  write_npy(folder + "/y.npy", "<f4", shape_of_targets, y);
  write_archive(folder + "/xy.npz",
                {{"x.npy", npy_bytes("<f4", shape_of_features, x)}, {"y.npy", npy_bytes("<f4", shape_of_targets, y)}});
  const std::string first_end = std::to_string(x.size());
  const std::string second_end = std::to_string(x.size() + y.size());
  write_safetensors_text(folder + "/xy.safetensors",
                         R"({"x":{"dtype":"F32","shape":[)" + std::to_string(kSamples) + "," +
                             std::to_string(kFeatures) + R"(],"data_offsets":[0,)" + first_end +
                             R"(]},"y":{"dtype":"F32","shape":[)" + std::to_string(kSamples) +
                             R"(,1],"data_offsets":[)" + first_end + "," + second_end + "]}}",
                         x + y);
}

void write_pictures(const std::string& folder) {
  for (int i = 0; i < 48; ++i) {
    const std::string path = folder + (i % 2 == 0 ? "/dark/" : "/light/") + std::to_string(i);
    WrittenPicture picture = gradient(10 + i % 5, 14, 3);
    for (std::uint8_t& value : picture.pixels) {
      value = static_cast<std::uint8_t>(value / 2 + (i % 2 == 0 ? 0 : 100) + i);
    }
    if (i % 3 == 0) {
      write_bytes(path + ".png", png_bytes(picture));
    } else {
      write_bytes(path + ".jpg", jpeg_bytes(picture));
    }
  }
}

void make_data(const std::string& folder) {
  std::filesystem::create_directories(folder);
  write_table(folder + "/table.csv");
  write_arrays(folder);
  write_pictures(folder + "/pictures");
  std::ofstream text(folder + "/text.txt");
  for (int i = 0; i < 20; ++i) text << "she sells sea shells " << i << " times\n";
}

// ---- Pipelines

enum class Kind { numbers, pictures, text, tags };

struct Pipeline {
  Dataset training;
  Dataset validation;
  Kind kind = Kind::numbers;
  std::int64_t classes = 1;
};

Dataset numbers() {
  Tensor features{Shape{kSamples, kFeatures}};
  Tensor targets{Shape{kSamples, 1}};
  for (std::int64_t i = 0; i < kSamples; ++i) {
    for (std::int64_t column = 0; column < kFeatures; ++column) {
      features.sample(i)[static_cast<std::size_t>(column)] = feature(i, column);
    }
    targets.sample(i)[0] = target(i);
  }
  return from_tensors(std::move(features), std::move(targets));
}

const std::vector<ArraySpec> kInputs = {{.name = "features", .shape = Shape{kFeatures}}};
const std::vector<ArraySpec> kTargets = {{.name = "targets", .shape = Shape{1}}};

void write_sample(std::int64_t sample, const SampleArrays& into) {
  for (std::int64_t column = 0; column < kFeatures; ++column) {
    into.inputs.elements<float>(0)[static_cast<std::size_t>(column)] = feature(sample, column);
  }
  into.targets.elements<float>(0)[0] = target(sample);
}

Dataset generated(const std::string& spill_folder) {
  return from_generator({.inputs = kInputs, .targets = kTargets, .spill_folder = spill_folder},
                        [sample = std::int64_t{0}](const SampleArrays& into) mutable {
                          if (sample == kSamples) return false;
                          write_sample(sample++, into);
                          return true;
                        });
}

Dataset noisy(const Dataset& data) {
  return data.map(
      [](const SampleArrays& sample, Random& random) {
        for (float& value : sample.inputs.elements<float>(0)) value += 0.1F * random.normal();
      },
      "noise");
}

Pipeline of(const Dataset& data) {
  const auto [training, validation] = data.split(0.25);
  return {.training = training.shuffle().batch(12), .validation = validation.batch(9)};
}

Pipeline pictures(const std::string& folder, const std::function<Dataset(const Dataset&)>& change) {
  const auto [training, validation] =
      read_pictures(folder + "/pictures", {.height = 10, .width = 10}).split(0.25, {.by_label = true});
  return {.training = change(training).shuffle().batch(9).prefetch(2, {.threads = 2}),
          .validation = validation.map(center_crop(8, 8)).batch(6),
          .kind = Kind::pictures,
          .classes = 2};
}

Pipeline text_windows(const std::string& folder) {
  const auto [training, validation] = read_text(folder + "/text.txt").split(0.2);
  const TextEncoder encoder = TextEncoder::fit(training, {.unknown = UnknownCategory::other});
  const auto windows = [&](const Text& text) { return encoder.dataset(text).window(8, {.shift = 4}); };
  return {.training = windows(training).shuffle().batch(8),
          .validation = windows(validation).batch(8),
          .kind = Kind::text,
          .classes = encoder.ids()};
}

Pipeline table(const std::string& folder) {
  const auto [training, validation] = read_csv(folder + "/table.csv").split(0.25);
  const auto encoder = TableEncoder::fit(training, {.targets = {"price"}, .normalize_targets = true});
  return {.training = encoder.dataset(training).shuffle().batch(12),
          .validation = encoder.dataset(validation).batch(9)};
}

// Sentences with a tag for each word, in batches of similar lengths.
Pipeline tagged_words() {
  std::vector<std::vector<std::int32_t>> words(static_cast<std::size_t>(kSamples));
  std::vector<std::vector<std::int32_t>> tags(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    Random random(12, Purpose::user, 0, i);
    for (std::uint64_t left = 1 + random.below(9); left > 0; --left) {
      words[i].push_back(static_cast<std::int32_t>(random.below(7)));
      tags[i].push_back(words[i].back() % 3);
    }
  }
  const auto [training, validation] =
      from_sequences({{"words", Sequences(words)}}, {{"tags", Sequences(tags)}}).split(18);
  return {.training = training.bucketed(12, {.bounds = {3, 6}}).padded(10).batch(12),
          .validation = validation.padded(10).batch(9),
          .kind = Kind::tags,
          .classes = 3};
}

// Outputs of a model whose weights are a function of their places.
Dataset outputs_of_a_part(const Dataset& data, const std::string& file) {
  Model part = Sequential{Input{kFeatures}, Dense{4, {.activation = Activation::tanh}}};
  std::vector<float> weights(part.parameters().float_count());
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = std::sin(static_cast<float>(i));
  part.set_weights(weights, {});
  return cached_outputs(part, data, {.file = file});
}

// Two inputs of a sample, of which the model takes the second one.
Dataset zipped(const Dataset& data) {
  Tensor numbers{Shape{kSamples, 3}};
  for (std::int64_t i = 0; i < kSamples; ++i) numbers.sample(i)[0] = feature(i, 5);
  const Dataset inputs_alone = from_tensors({{"more", numbers}}, {});
  return Dataset::zip({inputs_alone, noisy(data)});
}

std::vector<FileArray> arrays(const std::string& path, const std::string& first, const std::string& second) {
  return {{.path = path, .array = first, .name = "x"}, {.path = path, .array = second, .name = "y"}};
}

Dataset from_archive(const std::string& path) {
  const std::vector<FileArray> both = arrays(path, "x", "y");
  return from_files({both[0]}, {both[1]});
}

// The cache of a file is made by the first run of a folder and read by those after it, whole or not at all.
Pipeline pipeline(int number, const std::string& folder, const std::string& run) {
  const Dataset data = numbers();
  const auto keeps = [](const SampleArrays& sample) { return sample.inputs.elements<float>(0)[0] > -0.8F; };
  switch (number) {
    case 0:
      return of(data);
    case 1:
      return of(noisy(data));
    case 2:
      return table(folder);
    case 3:
      return of(from_files({{.path = folder + "/x.npy", .name = "x"}}, {{.path = folder + "/y.npy", .name = "y"}}));
    case 4:
      return of(from_archive(folder + "/xy.npz"));
    case 5:
      return of(from_archive(folder + "/xy.safetensors"));
    case 6:
      return text_windows(folder);
    case 7:
      return of(generated(""));
    case 8:
      std::filesystem::create_directories(run + ".spill");
      return of(generated(run + ".spill"));
    case 9:
      return pictures(folder,
                      [](const Dataset& all) { return all.map(random_crop(8, 8)).map(augment({.rotate = 0.1F})); });
    case 10:
      return pictures(folder, [&](const Dataset& all) { return all.cache(run + ".cache").map(center_crop(8, 8)); });
    case 11:
      return pictures(folder, [](const Dataset& all) {
        return all.cache().map(random_crop(8, 8, {.padding = 2})).map(augment({.flip = Flip::both, .cutout = 0.3F}));
      });
    case 12:
      return of(from_source({.size = kSamples, .inputs = kInputs, .targets = kTargets, .content = "a"}, write_sample));
    case 13:
      return of(data.filter(keeps, "larger"));
    case 14:
      return of(Dataset::concatenate({data.take(30), data.skip(40)}));
    case 15:
      return of(Dataset::interleave({data.take(20), data.skip(20).take(33)}));
    case 16: {
      const auto [training, validation] = data.split(20);
      return {.training = training.take(40).skip(3).repeat(2).shuffle(17).batch(7, {.drop_remainder = true}),
              .validation = validation.batch(20)};
    }
    case 17: {
      const auto [training, validation] = data.split(0.25);
      return {.training = noisy(training).shuffle().batch(10).prefetch(3, {.threads = 2}),
              .validation = validation.batch(4).prefetch(1)};
    }
    case 18: {
      const auto [training, validation] = noisy(data).split(0.25);
      return {.training = training.mixup(0.3F).shuffle().batch(12), .validation = validation.batch(9)};
    }
    case 19:
      return of(noisy(data.cache().filter(keeps, "larger")));
    case 20:
      return tagged_words();
    case 21:
      return of(zipped(data));
    case 22:
      return of(outputs_of_a_part(data, ""));
    case 23:
      return of(outputs_of_a_part(data, run + ".outputs"));
    default:
      throw Error{ErrorCode::invalid_argument, "pipelines are numbered from 0 to 23"};
  }
}

// ---- Training

Model model_of(const Pipeline& data) {
  std::vector<Value> inputs;
  for (const ArraySpec& spec : data.training.inputs()) {
    inputs.push_back(input(spec.shape, {.dtype = spec.dtype, .name = spec.name}));
  }
  if (inputs.size() > 1) {
    const Value hidden = Dense{12, {.activation = Activation::relu}}(Concatenate{}(inputs));
    return Model{inputs, {Dense{data.classes}(hidden)}};
  }
  const Value& start = inputs[0];
  if (data.kind == Kind::tags) {
    return Model{start, Dense{data.classes}(Dropout{0.1F}(Embedding{7, 4}(start)))};
  }
  if (data.kind == Kind::text) {
    return Model{start, Dense{data.classes}(Dropout{0.1F}(Flatten{}(Embedding{data.classes, 4}(start))))};
  }
  const Value hidden = Dense{12, {.activation = Activation::relu}}(Flatten{}(start));
  return Model{start, Dense{data.classes}(Dropout{0.1F}(BatchNormalization{}(hidden)))};
}

// Counts the steps before and after each, in a state that outlives deaths.
LambdaCallback counter() {
  return LambdaCallback{
      {.name = "counter",
       .state = CallbackState{{"begun", std::int64_t{0}}, {"steps", std::int64_t{0}}},
       .on_step_begin = [](CallbackState& state,
                           TrainingContext&) { state["begun"] = std::get<std::int64_t>(state["begun"]) + 1; },
       .on_step_end = [](CallbackState& state, TrainingContext&,
                         const Logs&) { state["steps"] = std::get<std::int64_t>(state["steps"]) + 1; }}};
}

// A clock that goes on by a second with each step, so that times are a function of the steps. A Timer has it first.
class ClockOfSteps final : public Callback {
 public:
  std::string name() const override { return "clock_of_steps"; }
  void on_step_end(TrainingContext&, const Logs&) override { *seconds_ += 1; }
  std::function<std::chrono::steady_clock::time_point()> now() const {
    return [seconds = seconds_] { return std::chrono::steady_clock::time_point(std::chrono::seconds(*seconds)); };
  }

 private:
  std::shared_ptr<std::int64_t> seconds_ = std::make_shared<std::int64_t>(0);
};

TensorBoardOptions curves_of(int number) {
  TensorBoardOptions options;
  if (number % 2 == 0) options.scalars_every_steps = 3;
  if (number % 3 == 0) options.histograms_every_epochs = 2;
  if (number % 3 == 1) options.images_every_epochs = 3;
  options.write_graph = number % 4 == 0;
  if (number % 5 == 0) {
    options.add = [](TrainingContext& context, TensorBoardPoints& points) {
      points.text("epoch", std::to_string(context.epoch()));
    };
  }
  return options;
}

// No server listens there. Nothing of it may reach the training.
void add_monitor(std::vector<CallbackHandle>& callbacks) {
  try {
    callbacks.push_back(RemoteMonitor{{.root = "http://127.0.0.1:1",
                                       .flush_limit = std::chrono::milliseconds(1),
                                       .first_pause = std::chrono::milliseconds(1)}});
  } catch (const Error& without_curl) {
    if (without_curl.code() != ErrorCode::unsupported) throw;
  }
}

// All callbacks but ProgressLine, which leaves nothing; some of them by turns.
std::vector<CallbackHandle> callbacks_of(int number) {
  const ClockOfSteps clock;
  std::vector<CallbackHandle> callbacks = {
      clock,
      Timer{{.now = clock.now()}},
      ModelCheckpoint{{.every_steps = 7, .best_by = "val_loss"}},
      CSVLogger{},
      TensorBoard{curves_of(number)},
      counter(),
      EarlyStopping{{.patience = 4, .start_from_epoch = 1, .restore_best_weights = number % 3 == 1}}};
  if (number % 2 == 0) {
    callbacks.push_back(ReduceLROnPlateau{{.factor = 0.5, .patience = 1}});
  } else {
    callbacks.push_back(
        LearningRateScheduler{[](std::int64_t epoch, float rate) { return epoch % 3 == 2 ? rate * 0.7F : rate; }});
  }
  if (number % 3 == 0) callbacks.push_back(SwapEMAWeights{});
  if (number % 4 == 2) add_monitor(callbacks);
  return callbacks;
}

void train(Replica& replica, const Pipeline& data, int number, std::int64_t epochs) {
  FitOptions options{.epochs = epochs, .validation = data.validation, .callbacks = callbacks_of(number)};
  // With three batches each rank has several sums in the shard tree, and the ranks connect twice.
  if (number % 5 == 3) options.accumulate = number % 2 == 0 ? 3 : 2;
  if (number % 5 == 4) options.steps_per_epoch = 5;
  if (number % 4 == 1) options.validation_every = 2;
  const bool keeps_averages = number % 3 == 0;
  if (data.kind == Kind::numbers) {
    Trainer trainer(replica, model_of(data), Adam{{.learning_rate = 0.02F, .use_ema = keeps_averages}},
                    MeanSquaredError{}, {MeanAbsoluteError{}});
    trainer.fit(data.training, options);
  } else {
    Trainer trainer(replica, model_of(data), SGD{{.learning_rate = 0.05F, .momentum = 0.9F, .use_ema = keeps_averages}},
                    SparseCategoricalCrossentropy{{.from_logits = true}},
                    {SparseCategoricalAccuracy{}, unweighted(SparseCategoricalAccuracy{{.name = "of_all"}})});
    trainer.fit(data.training, options);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains on one of 24 pipelines of data.");
  SuperviseOptions options{.replicas = 2, .recovery = {.max_restarts = 1000}, .shards = 4};
  std::string made;
  std::string data;
  int number = 0;
  std::int64_t epochs = 10;
  CLI::Option* const make = app.add_option("--make", made);
  app.add_option("--run-dir", options.run_directory)->excludes(make);
  app.add_option("--data", data);
  app.add_option("--pipeline", number);
  app.add_option("--replicas", options.replicas);
  app.add_option("--epochs", epochs);
  app.add_option("--inject", options.recovery.faults);
  CLI11_PARSE(app, argc, argv);
  if (!made.empty()) {
    make_data(made);
    return 0;
  }
  return supervise(argc, argv, options, [&](Replica& replica) {
    train(replica, pipeline(number, data, options.run_directory), number, epochs);
  });
}
