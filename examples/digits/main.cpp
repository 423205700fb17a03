// LeNet-5 learns handwritten digits on mirrored replicas, and survives their failures. The largest example: nearly
// every option of Holdfast is an option of this program. scripts/quickstart and the resilience tests run it. So options
// are checked before training begins, and the report has what these compare, above all the digest of the weights.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "drawn_digits.h"
#include "holdfast/holdfast.h"

namespace {

struct Arguments {
  std::string images, labels;  // both empty: draw digits instead of reading them
  std::int64_t drawn = 6000;
  std::int64_t holdout = 1000;
  std::int64_t epochs = 10;
  std::int64_t batch = 128;
  std::int64_t accumulate = 1;
  std::int64_t save_every = 0;
  float learning_rate = 2e-3F;
  std::string report;
  std::string device = "cpu";
  std::string samples_on = "host";
  std::string precision = "f32";
  std::string reduction = "shard_order";
  std::optional<double> hang_after_seconds;
  std::optional<double> callback_timeout_seconds;
  std::optional<double> start_timeout_seconds;
  std::string when_lost = "shrink";
  std::string when_slow = "report";
  std::string recover_from = "survivors";
  bool is_alone = false;
  holdfast::GradientChecks check_gradients;
  holdfast::SuperviseOptions run;
};

// The last layer has no activation, since the loss takes logits.
holdfast::Sequential lenet5() {
  using namespace holdfast;
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

holdfast::Dataset read_digits(const Arguments& arguments) {
  // Each of the two options needs the other one, so both are empty or neither is.
  // Drawn digits are a function of seed and number, so each replica and each start has the same ones.
  if (arguments.images.empty() && arguments.labels.empty()) return drawn_digits(arguments.drawn, arguments.run.seed);
  return holdfast::read_idx(arguments.images, arguments.labels);
}

// For both data sets, so that evaluation takes its batches from the device, too.
holdfast::Dataset placed(const holdfast::Dataset& digits, const Arguments& arguments) {
  return arguments.samples_on == "device" ? digits.keep_on_device() : digits;
}

// scripts/quickstart reads these names, and tests do.
void write_report(const std::string& path, const holdfast::Replica& replica, const holdfast::Trainer& trainer,
                  double accuracy) {
  nlohmann::json restarts = nlohmann::json::array();
  for (const holdfast::RestartRecord& restart : replica.restarts()) {
    restarts.push_back({{"cause", restart.cause},
                        {"rank", restart.rank},
                        {"step", restart.step},
                        {"generation", restart.generation},
                        {"times", {{"detected_unix_seconds", restart.detected_unix_seconds}}}});
  }
  const nlohmann::json report = {{"steps", trainer.step()},
                                 {"test_accuracy", accuracy},
                                 {"weights_digest", trainer.weights_digest().hex()},
                                 {"restarts", restarts}};
  std::ofstream file(path);
  file << report.dump(2) << "\n";
  // Closed before it is asked: a full disk may show only when the last bytes are written.
  file.close();
  if (!file) throw holdfast::Error(holdfast::ErrorCode::input_output, "cannot write the report " + path);
}

void train(holdfast::Replica& replica, const Arguments& arguments) {
  const holdfast::Dataset digits = read_digits(arguments);
  if (arguments.holdout >= digits.size()) {
    throw holdfast::Error(holdfast::ErrorCode::invalid_argument,
                          "--holdout " + std::to_string(arguments.holdout) + " leaves none of the " +
                              std::to_string(digits.size()) + " digits for training; hold fewer out");
  }
  // Divided by position, before anything is shuffled, so that no digit is on both sides in any epoch or after a
  // restart.
  const std::int64_t training = digits.size() - arguments.holdout;

  // The metric has a name, by which its mean is found in the results of evaluate() below.
  holdfast::Trainer trainer(replica, lenet5(), holdfast::Adam(arguments.learning_rate),
                            holdfast::SparseCategoricalCrossentropy({.from_logits = true}),
                            {holdfast::SparseCategoricalAccuracy({.name = "accuracy"})});
  trainer.fit(
      placed(digits.take(training).shuffle().batch(arguments.batch).prefetch(2), arguments),
      {.epochs = arguments.epochs,
       .accumulate = arguments.accumulate,
       .callbacks = {holdfast::ModelCheckpoint({.every_steps = arguments.save_every}), holdfast::ProgressLine()},
       .check_gradients = arguments.check_gradients});

  double accuracy = 0;
  if (arguments.holdout > 0) {
    // A call of the run, which all ranks make. Only after it does one of them print and write.
    accuracy = trainer.evaluate(placed(digits.skip(training).batch(arguments.batch), arguments)).at("accuracy");
  }
  if (!replica.is_primary()) return;
  std::printf("steps %ld  test accuracy %.4f  weights %s\n", static_cast<long>(trainer.step()), accuracy,
              trainer.weights_digest().hex().c_str());
  std::fflush(stdout);
  if (!arguments.report.empty()) write_report(arguments.report, replica, trainer, accuracy);
}

// A whole number. CLI11's own conversion turns -1, and numbers that are too large, into other numbers.
template <typename Number>
CLI::Validator whole(Number lowest, Number highest) {
  const std::string range = std::to_string(lowest) + " to " + std::to_string(highest);
  return {[=](std::string& text) -> std::string {
            Number number = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
            const bool is_whole = error == std::errc() && end == text.data() + text.size();
            return is_whole && number >= lowest && number <= highest ? ""
                                                                     : text + " is not a whole number from " + range;
          },
          // An empty description keeps the limits, which may have 20 digits, out of --help.
          ""};
}

// What is wrong with a time in seconds; empty when it is valid. CLI11's own range check accepts nan.
std::string objection_to_seconds(const std::string& text) {
  double seconds = 0;
  const bool is_number = CLI::detail::lexical_cast(text, seconds);
  return is_number && seconds >= 0.001 && seconds <= 1e6 ? "" : text + " is not a number from 0.001 to 1000000";
}

// Checked at the start. After hours of training it would be too late to learn that the report cannot be written.
std::string objection_to_report(const std::string& path) {
  // Nothing is opened here, so the report of an earlier run stays until there is a new one.
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  const std::string problem = !fs::is_directory(folder, error) ? "there is no folder " + folder.string()
                              : fs::is_directory(path, error)  ? "it is a folder"
                              : fs::exists(path, error)
                                  ? (::access(path.c_str(), W_OK) != 0 ? "it may not be written" : "")
                              : ::access(folder.c_str(), W_OK | X_OK) != 0 ? folder.string() + " may not be written to"
                                                                           : "";
  return problem.empty() ? "" : "the report " + path + " cannot be written: " + problem + "; name another file";
}

void declare(CLI::App& app, Arguments& arguments) {
  constexpr std::int64_t kMany = std::int64_t{1} << 40;
  constexpr std::int64_t kMostDrawn = 10'000'000;  // 31 GB
  constexpr int kMostProcesses = 64;
  const auto positive = whole<std::int64_t>(1, kMany);
  const auto not_negative = whole<std::int64_t>(0, kMany);
  // A mistyped number must not start thousands of processes.
  const auto processes = whole(0, kMostProcesses);
  auto* images =
      app.add_option("--images", arguments.images, "IDX file of 28 x 28 images, plain or gzip (default: draw digits)");
  auto* labels = app.add_option("--labels", arguments.labels, "IDX file of their labels");
  // Images without labels, or labels without images, would be refused by read_idx(), but only after the replicas have
  // started.
  images->needs(labels);
  labels->needs(images);
  app.add_option("--drawn", arguments.drawn, "number of digits to draw without --images")
      ->capture_default_str()
      ->check(whole<std::int64_t>(1, kMostDrawn));
  app.add_option("--holdout", arguments.holdout,
                 "number of samples at the end for measuring accuracy, not used for training")
      ->capture_default_str()
      ->check(not_negative);
  app.add_option("--replicas", arguments.run.replicas, "number of mirrored replicas; 0: one for each core")
      ->check(processes);
  // The bits depend on the number of shards, and not on that of replicas. Runs that are compared name it.
  app.add_option("--shards", arguments.run.shards, "number of parts of each batch; 0: one for each replica")
      ->check(whole(0, std::numeric_limits<int>::max()));
  app.add_option("--epochs", arguments.epochs, "number of passes over the data")
      ->capture_default_str()
      ->check(positive);
  app.add_option("--batch", arguments.batch, "samples in a step, over all replicas")
      ->capture_default_str()
      ->check(positive);
  app.add_option("--accumulate", arguments.accumulate, "batches of a step; 1: a step is a batch")
      ->capture_default_str()
      ->check(positive);
  app.add_option("--learning-rate", arguments.learning_rate, "learning rate of Adam")->capture_default_str();
  app.add_option("--seed", arguments.run.seed, "seed of the weights and the order of samples")
      ->capture_default_str()
      ->check(whole<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max()));
  app.add_option("--run-dir", arguments.run.run_directory,
                 "folder of savepoints and journal; start again with the same folder to resume")
      ->capture_default_str();
  app.add_option(
         "--fresh", arguments.run.start_token,
         "start anew, and keep an earlier run under another name; with a value, such as --fresh=MONDAY, only once for "
         "each value")
      // It may come without a value, so main() asks whether it was given, not what it says.
      ->expected(0, 1);
  app.add_flag("--alone", arguments.is_alone, "train in this process, for a debugger, and write no files");
  app.add_option("--save-every", arguments.save_every, "steps between savepoints; 0: one each epoch")
      ->capture_default_str()
      ->check(not_negative);
  app.add_option("--report", arguments.report, "JSON file with the results, written at the end")
      ->check(objection_to_report);
  app.add_option("--device", arguments.device, "cpu or cuda")
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--devices", arguments.run.devices,
                 "device of each replica, such as cuda:0,cuda:1; replaces --device and --replicas")
      ->delimiter(',');
  app.add_option("--samples-on", arguments.samples_on,
                 "where to keep the digits: in the host's memory, or all of them on each device")
      ->capture_default_str()
      ->check(CLI::IsMember({"host", "device"}));
  app.add_option("--precision", arguments.precision, "precision of matrix products: f32, bf16, and on GPUs tf32")
      ->capture_default_str()
      ->check(CLI::IsMember({"f32", "tf32", "bf16"}));
  app.add_option("--reduction", arguments.reduction,
                 "how GPUs add gradients: in the order of shards, with the same bits for any number of replicas, or in "
                 "NCCL's order, which is fastest")
      ->capture_default_str()
      ->check(CLI::IsMember({"shard_order", "fastest"}));
  app.add_option("--hang-after", arguments.hang_after_seconds,
                 "seconds without progress after which a replica is replaced (default: depends on the step times)")
      ->check(objection_to_seconds);
  app.add_option("--callback-timeout", arguments.callback_timeout_seconds,
                 "the same limit within callbacks (default: --hang-after if given, else 600)")
      ->check(objection_to_seconds);
  app.add_option("--start-timeout", arguments.start_timeout_seconds,
                 "the same limit while a replica starts (default: 120)")
      ->check(objection_to_seconds);
  app.add_option("--spares", arguments.run.recovery.spares,
                 "number of processes that are ready to replace a failed replica")
      ->capture_default_str()
      ->check(processes);
  app.add_option("--max-restarts", arguments.run.recovery.max_restarts,
                 "most replicas lost within ten minutes; one more ends the run")
      ->capture_default_str()
      ->check(whole(0, std::numeric_limits<int>::max()));
  app.add_option("--when-lost", arguments.when_lost,
                 "after a loss without a spare: wait for a new process, or shrink and continue at once")
      ->capture_default_str()
      ->check(CLI::IsMember({"wait", "shrink"}));
  app.add_option("--recover-from", arguments.recover_from,
                 "survivors keep their state, or all start again from the newest savepoint")
      ->capture_default_str()
      ->check(CLI::IsMember({"survivors", "savepoint"}));
  app.add_option("--when-slow", arguments.when_slow,
                 "if a replica is slower than the others: report it, deal it fewer shards, or replace it with a spare")
      ->capture_default_str()
      ->check(CLI::IsMember({"report", "deal", "replace"}));
  app.add_option("--memory-snapshot-every", arguments.run.memory_snapshot_every,
                 "steps between copies of the state into the watchdog's memory; 0: as often as it costs almost nothing")
      ->capture_default_str()
      ->check(not_negative);
  app.add_option("--check-gradients-every", arguments.check_gradients.every,
                 "steps between checks that compute gradients on two replicas and compare them; 0: no checks")
      ->capture_default_str()
      ->check(not_negative);
  app.add_option("--check-gradients-shards", arguments.check_gradients.shards,
                 "number of shards of each replica that a check computes twice; 0: all")
      ->capture_default_str()
      ->check(not_negative);
  app.add_option("--inject", arguments.run.recovery.faults,
                 "fault to inject, such as rank=1,step=120,fault=kill; may be repeated");
}

std::chrono::milliseconds to_milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

// Wrong options return 1, which means the same as from supervise(): starting the program again changes nothing.
int parse(CLI::App& app, int argc, char** argv, bool& is_parsed) {
  try {
    // --help is an error with code 0 to the parser, so the code alone does not say whether to go on.
    app.parse(argc, argv);
    is_parsed = true;
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("LeNet-5 learns digits on mirrored replicas.");
  Arguments arguments;
  declare(app, arguments);
  bool is_parsed = false;
  const int exit_code = parse(app, argc, argv, is_parsed);
  if (!is_parsed) return exit_code;
  // What was not given stays empty, so that HOLDFAST_START and HOLDFAST_ALONE decide.
  if (app.count("--fresh") > 0) arguments.run.start = holdfast::Start::fresh;
  if (arguments.is_alone) arguments.run.alone = true;
  arguments.run.kind = arguments.device == "cuda" ? holdfast::DeviceKind::cuda : holdfast::DeviceKind::cpu;
  arguments.run.precision = holdfast::precision_from_name(arguments.precision);
  arguments.run.reduction = holdfast::reduction_from_name(arguments.reduction);
  holdfast::RecoveryOptions& recovery = arguments.run.recovery;
  // Without a value the limit follows the times of the steps, which a default from here would replace.
  if (arguments.hang_after_seconds) recovery.hang_after = to_milliseconds(*arguments.hang_after_seconds);
  if (arguments.callback_timeout_seconds) {
    recovery.callback_timeout = to_milliseconds(*arguments.callback_timeout_seconds);
  }
  if (arguments.start_timeout_seconds) recovery.start_timeout = to_milliseconds(*arguments.start_timeout_seconds);
  // The parser has refused other words, so what is not named here is the default.
  recovery.when_lost = arguments.when_lost == "wait" ? holdfast::WhenLost::wait : holdfast::WhenLost::shrink;
  if (arguments.when_slow == "deal") recovery.when_slow = holdfast::WhenSlow::deal;
  if (arguments.when_slow == "replace") recovery.when_slow = holdfast::WhenSlow::replace;
  recovery.recover_from =
      arguments.recover_from == "savepoint" ? holdfast::RecoverFrom::savepoint : holdfast::RecoverFrom::survivors;
  return holdfast::supervise(argc, argv, arguments.run, [&](holdfast::Replica& replica) { train(replica, arguments); });
}
