// Training through fit() under a watchdog, as a user has it. bench/gpu/runs.py lets this program and its peer take
// turns.
//
//   gpu_training --model mlp|lenet5 --turns PREFIX --run-dir DIR [--device cuda] [--precision tf32] [--data host]
//                [--batch 2048] [--divisor 1] [--snapshot-every 0]

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>
#include <string>

#include "holdfast/base/error.h"
#include "holdfast/holdfast.h"
#include "training/measured_models.h"
#include "turns.h"

namespace {

using namespace holdfast;

struct Arguments {
  std::string model = "mlp";
  std::string turns;
  std::string run_directory;
  std::string device = "cuda";
  std::string precision = "f32";
  std::string data = "host";
  std::int64_t batch = 2048;
  std::int64_t divisor = 1;
  std::int64_t snapshot_every = 0;
};

Dataset batches_of(const Dataset& samples, const Arguments& arguments) {
  // All repetitions form one epoch, so that no measured step contains an epoch's end.
  const Dataset batches = samples.repeat(1'000'000).batch(arguments.batch).prefetch(2);
  return arguments.data == "device" ? batches.keep_on_device() : batches;
}

FitOptions fit_options(const Arguments& arguments) {
  return {.callbacks = {std::make_shared<Turns>(arguments.turns)}};
}

void train(Replica& replica, const Arguments& arguments) {
  if (arguments.model == "mlp") {
    Trainer trainer(replica, measured_mlp(arguments.divisor), Adam(1e-4F), BinaryCrossentropy({.from_logits = true}));
    const Dataset samples = measured_noise({8000 / arguments.divisor}, 2, arguments.batch);
    trainer.fit(batches_of(samples, arguments), fit_options(arguments));
  } else {
    Trainer trainer(replica, measured_lenet5(), Adam(1e-3F), SparseCategoricalCrossentropy({.from_logits = true}));
    trainer.fit(batches_of(measured_noise({28, 28, 1}, 10, arguments.batch), arguments), fit_options(arguments));
  }
}

// Memory snapshots are made as `--snapshot-every` says, or never. The default, half a percent of the time, would make
// too many in the measured steps, since this run waits for its turn most of the time.
SuperviseOptions run_of(const Arguments& arguments) {
  const std::int64_t never = std::numeric_limits<std::int64_t>::max();
  return {.devices = {arguments.device == "cuda" ? "cuda:0" : "cpu:0"},
          .precision = precision_from_name(arguments.precision),
          // The turns of other contenders may be long.
          .recovery = {.max_restarts = 0, .hang_after = std::chrono::minutes(10)},
          .memory_snapshot_every = arguments.snapshot_every > 0 ? arguments.snapshot_every : never,
          .run_directory = arguments.run_directory,
          .seed = 1};
}

void declare(CLI::App& app, Arguments& arguments) {
  app.add_option("--model", arguments.model, "mlp or lenet5")->check(CLI::IsMember({"mlp", "lenet5"}));
  app.add_option("--turns", arguments.turns, "FIFOs PREFIX.ask and PREFIX.told")->required();
  app.add_option("--run-dir", arguments.run_directory, "run directory of this run only")->required();
  app.add_option("--device", arguments.device, "cpu or cuda")->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--precision", arguments.precision, "f32, tf32 or bf16")
      ->check(CLI::IsMember({"f32", "tf32", "bf16"}));
  app.add_option("--data", arguments.data, "where the samples are: host or device")
      ->check(CLI::IsMember({"host", "device"}));
  app.add_option("--batch", arguments.batch, "samples a step")->check(CLI::Range(1, 1 << 20));
  app.add_option("--divisor", arguments.divisor, "divisor of all widths of the mlp, for trials")
      ->check(CLI::Range(1, 100));
  app.add_option("--snapshot-every", arguments.snapshot_every, "steps between memory snapshots; 0: none");
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Trains in turns on request; for bench/gpu/runs.py.");
  declare(app, arguments);
  CLI11_PARSE(app, argc, argv);
  return supervise(argc, argv, run_of(arguments), [&](Replica& replica) { train(replica, arguments); });
}
