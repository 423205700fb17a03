// The training that bench/recovery and bench/hosts kill and bench/slow_replica slows down: 100 MB of state (8.7 million
// parameters with Adam), in steps that cost as little as possible for such a model. It writes a line for each step that
// a process has committed.
//
//   recovery_program --folder DIR [--replicas 4] [--spares 0] [--when-lost wait] [--recover-from survivors]
//                    [--save-every 0] [--width 2048] [--alone] [--batch 16] [--shards 4] [--when-slow report]
//                    [--memory-snapshot-every 0] [--inject FAULT] [--model mlp]
//
// The state grows with the square of the width: it is 1 GB with 8192. With --model lenet5 it trains LeNet-5 instead, to
// see what a step costs.
//
// Each process appends "generation rank size step microseconds" to DIR/steps-<pid>.txt. The microseconds are of the
// system clock, as in the journal.

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/holdfast.h"
#include "training/measured_models.h"

namespace {

using namespace holdfast;

constexpr std::int64_t kInputs = 784;
constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kSamples = 1024;
constexpr std::int64_t kEpochs = 100'000;  // more than any benchmark waits for

struct Arguments {
  std::string folder;
  int replicas = 4;
  int spares = 0;
  std::string when_lost = "wait";
  std::string recover_from = "survivors";
  std::int64_t save_every = 0;
  std::int64_t memory_snapshot_every = 0;
  std::int64_t width = 2048;
  std::int64_t batch = 16;
  int shards = 4;
  std::string when_slow = "report";
  std::vector<std::string> faults;
  bool is_alone = false;
  std::string model = "mlp";
};

// bench/resilience/recovery_peer.py has the same model.
Sequential model(const Arguments& arguments) {
  if (arguments.model == "lenet5") return measured_lenet5();
  const std::int64_t width = arguments.width;
  return Sequential{Input{kInputs}, Dense{width, {.activation = Activation::relu}},
                    Dense{width, {.activation = Activation::relu}}, Dense{1408, {.activation = Activation::relu}},
                    Dense{kClasses}};
}

Dataset samples(const Arguments& arguments) {
  if (arguments.model == "lenet5") return measured_noise({28, 28, 1}, kClasses, arguments.batch).repeat(1000);
  Tensor features(Shape{kSamples, kInputs});
  Tensor targets(Shape{kSamples});
  for (std::int64_t i = 0; i < kSamples; ++i) {
    Random random(1, Purpose::synthetic_data, 0, static_cast<std::uint64_t>(i));
    for (float& feature : features.sample(i)) feature = random.normal();
    targets.sample(i)[0] = static_cast<float>(i % kClasses);
  }
  return from_tensors(std::move(features), std::move(targets)).shuffle().repeat(1000);
}

// Writes which process has committed which step, and when.
class StepLog final : public Callback {
 public:
  StepLog(const Replica& replica, const std::string& folder)
      : replica_(replica), path_(folder + "/steps-" + std::to_string(::getpid()) + ".txt") {
    file_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!file_.is_open()) throw system_error(errno, "cannot open " + path_);
  }

  std::string name() const override { return "step_log"; }

  void on_step_end(TrainingContext& context, const Logs&) override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    std::array<char, 128> line{};
    const int length =
        std::snprintf(line.data(), line.size(), "%d %d %d %ld %ld\n", replica_.generation(), context.rank(),
                      context.replicas(), static_cast<long>(context.step()),
                      static_cast<long>(std::chrono::duration_cast<std::chrono::microseconds>(now).count()));
    if (::write(file_.value(), line.data(), static_cast<std::size_t>(length)) != length) {
      throw system_error(errno, "cannot write to " + path_);
    }
  }

 private:
  const Replica& replica_;
  const std::string path_;
  FileDescriptor file_;
};

void train(Replica& replica, const Arguments& arguments) {
  Trainer trainer(replica, model(arguments), Adam(1e-4F), SparseCategoricalCrossentropy({.from_logits = true}));
  FitOptions options{.epochs = kEpochs, .callbacks = {std::make_shared<StepLog>(replica, arguments.folder)}};
  if (arguments.save_every > 0) {
    options.callbacks.emplace_back(
        ModelCheckpoint({.every_steps = arguments.save_every, .every_epochs = 0, .keep_last = 2}));
  }
  trainer.fit(samples(arguments).batch(arguments.batch).prefetch(2), options);
}

int train_alone(const Arguments& arguments) {
  Replica replica = Replica::alone({.seed = 1, .shards = arguments.shards});
  train(replica, arguments);
  return 0;
}

SuperviseOptions run_of(const Arguments& arguments) {
  return {.replicas = arguments.replicas,
          .recovery = {.spares = arguments.spares,
                       .when_lost = arguments.when_lost == "wait" ? WhenLost::wait : WhenLost::shrink,
                       .recover_from =
                           arguments.recover_from == "savepoint" ? RecoverFrom::savepoint : RecoverFrom::survivors,
                       .when_slow = arguments.when_slow == "deal" ? WhenSlow::deal : WhenSlow::report,
                       // The benchmark kills replicas hundreds of times.
                       .max_restarts = std::numeric_limits<int>::max(),
                       .faults = arguments.faults},
          .memory_snapshot_every = arguments.memory_snapshot_every,
          .run_directory = arguments.folder + "/run",
          .seed = 1,
          .shards = arguments.shards};
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Trains until it is ended from outside; for bench/recovery.");
  app.add_option("--folder", arguments.folder, "folder for the lines of steps and for the run directory")->required();
  app.add_option("--replicas", arguments.replicas, "number of mirrored replicas");
  app.add_option("--spares", arguments.spares, "number of processes that are ready to replace a replica");
  app.add_option("--when-lost", arguments.when_lost, "wait or shrink")->check(CLI::IsMember({"wait", "shrink"}));
  app.add_option("--recover-from", arguments.recover_from, "survivors or savepoint")
      ->check(CLI::IsMember({"survivors", "savepoint"}));
  app.add_option("--save-every", arguments.save_every, "steps between savepoints; 0: none");
  app.add_option(
      "--memory-snapshot-every", arguments.memory_snapshot_every,
      "steps between copies of the state into the watchdog's memory; 0: as often as it costs almost nothing");
  app.add_option("--width", arguments.width, "width of the first two hidden layers")->check(CLI::Range(16, 65536));
  app.add_option("--batch", arguments.batch, "samples a step");
  app.add_option("--shards", arguments.shards, "number of parts of each batch");
  app.add_option("--when-slow", arguments.when_slow, "report or deal")->check(CLI::IsMember({"report", "deal"}));
  app.add_option("--inject", arguments.faults, "fault to inject; may be repeated");
  app.add_option("--model", arguments.model, "mlp or lenet5")->check(CLI::IsMember({"mlp", "lenet5"}));
  app.add_flag("--alone", arguments.is_alone, "one replica in this process, without a watchdog");
  CLI11_PARSE(app, argc, argv);
  if (arguments.is_alone) return train_alone(arguments);
  return supervise(argc, argv, run_of(arguments), [&](Replica& replica) { train(replica, arguments); });
}
