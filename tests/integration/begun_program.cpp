// Trains a line, 12 steps an epoch and 36 in all, for tests of how a run begins:
//
//   begun_program --run-dir DIR [--replicas 2] [--seed 1] [--batch 4] [--epochs 3] [--copies FOLDER]... [--inject
//   FAULT]...
//                 [--max-restarts 20] [--start resume|fresh] [--alone true|false]
//                 [--at STEP (--fail | --stop | --hold FOLDER)]
//
// It asks for a savepoint every 5 steps. At step STEP (0: before there is a Trainer) its primary rank throws what a new
// process would meet again, has its watchdog stopped, or makes FOLDER/held and waits until there is FOLDER/released.

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "holdfast/holdfast.h"
#include "support/line_points.h"

namespace {

using namespace holdfast;

constexpr std::int64_t kSamples = 48;

struct Asked {
  SuperviseOptions run{.replicas = 2, .memory_snapshot_every = 1, .seed = 1, .shards = 4};
  std::int64_t batch = 4;
  std::int64_t epochs = 3;
  std::int64_t at = -1;
  bool fails = false;
  bool stops = false;
  std::string hold;
};

void hold_at(const std::string& folder) {
  std::ofstream(folder + "/held").close();
  while (!std::filesystem::exists(folder + "/released")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void act(const Asked& asked) {
  if (asked.fails) throw Error(ErrorCode::invalid_argument, "the points are not those of a line");
  if (asked.stops) ::kill(::getppid(), SIGTERM);
  if (!asked.hold.empty()) hold_at(asked.hold);
}

class ActAt final : public Callback {
 public:
  explicit ActAt(const Asked& asked) : asked_(asked) {}
  std::string name() const override { return "act_at"; }
  void on_step_end(TrainingContext& context, const Logs&) override {
    if (context.is_primary() && context.step() == asked_.at) act(asked_);
  }

 private:
  const Asked& asked_;
};

void train(Replica& replica, const Asked& asked) {
  std::printf("trains in process %d\n", static_cast<int>(::getpid()));
  std::fflush(stdout);
  if (asked.at == 0 && replica.is_primary()) act(asked);
  Trainer trainer(replica, Sequential{Input{1}, Dense{1}}, Adam{0.1F}, MeanSquaredError{});
  trainer.fit(line_points(kSamples).shuffle().batch(asked.batch),
              {.epochs = asked.epochs,
               .callbacks = {ModelCheckpoint({.every_steps = 5}), CSVLogger{}, TensorBoard{}, ActAt{asked}}});
  if (!replica.is_primary()) return;
  std::printf("steps %ld weights %s\n", static_cast<long>(trainer.step()), trainer.weights_digest().hex().c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a line, and fails, stops or waits where it is told to.");
  Asked asked;
  const std::map<std::string, Start> starts{{"resume", Start::resume}, {"fresh", Start::fresh}};
  app.add_option("--run-dir", asked.run.run_directory)->required();
  app.add_option("--replicas", asked.run.replicas);
  app.add_option("--seed", asked.run.seed);
  app.add_option("--batch", asked.batch);
  app.add_option("--epochs", asked.epochs);
  app.add_option("--copies", asked.run.savepoint_copies);
  app.add_option("--inject", asked.run.recovery.faults);
  app.add_option("--max-restarts", asked.run.recovery.max_restarts);
  app.add_option("--start", asked.run.start)->transform(CLI::CheckedTransformer(starts));
  app.add_option("--alone", asked.run.alone);
  app.add_option("--at", asked.at);
  app.add_flag("--fail", asked.fails);
  app.add_flag("--stop", asked.stops);
  app.add_option("--hold", asked.hold);
  CLI11_PARSE(app, argc, argv);
  return supervise(argc, argv, asked.run, [&](Replica& replica) { train(replica, asked); });
}
