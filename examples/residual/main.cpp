// A small residual network (He et al., "Deep Residual Learning for Image Recognition", 2015) learns digits:
//
//   residual [--replicas N | --devices D,D...] [--shards N] [--steps N] [--seed N] [--run-dir DIR] [--report FILE]
//            [--images FILE --labels FILE] [--inject rank=1,step=30,fault=kill]

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "drawn_digits.h"
#include "holdfast/holdfast.h"
#include "residual_network.h"

namespace {

using namespace holdfast;

constexpr std::int64_t kBatch = 32;

struct Arguments {
  SuperviseOptions run = {.replicas = 2, .run_directory = "residual-run", .shards = 4};
  std::int64_t steps = 100;
  std::uint64_t seed = 0;
  std::string images;
  std::string labels;
  std::string report;
};

Dataset digits(const Arguments& arguments) {
  if (arguments.images.empty()) return drawn_digits(arguments.steps * kBatch, arguments.seed);
  return read_idx(arguments.images, arguments.labels);
}

void train(Replica& replica, const Arguments& arguments) {
  const Model model = residual_network();
  Trainer trainer(replica, model, SGD{{.learning_rate = 0.05F, .momentum = 0.9F}},
                  SparseCategoricalCrossentropy({.from_logits = true}));
  const FitResult fit = trainer.fit(digits(arguments).shuffle().batch(kBatch),
                                    {.epochs = 1, .callbacks = {ModelCheckpoint({.every_steps = 20})}});
  if (!replica.is_primary()) return;
  const nlohmann::json report = {
      {"steps", trainer.step()}, {"loss", fit.results.at("loss")}, {"weights_digest", trainer.weights_digest().hex()}};
  std::printf("%s\n", report.dump().c_str());
  if (!arguments.report.empty()) std::ofstream(arguments.report) << report.dump(2) << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("A residual network that is mirrored, killed and recovered.");
  CLI::Option* const replicas = app.add_option("--replicas", arguments.run.replicas, "number of mirrored replicas");
  app.add_option("--devices", arguments.run.devices, "a device for each replica, such as cuda:0,cuda:1")
      ->delimiter(',')
      ->excludes(replicas);
  app.add_option("--shards", arguments.run.shards, "number of parts of each batch");
  app.add_option("--steps", arguments.steps, "number of steps, of drawn digits")->check(CLI::PositiveNumber);
  app.add_option("--seed", arguments.seed, "seed of the weights and the digits");
  app.add_option("--run-dir", arguments.run.run_directory, "folder of savepoints and journal");
  app.add_option("--report", arguments.report, "JSON file with steps, loss and digest of the weights");
  CLI::Option* const labels = app.add_option("--labels", arguments.labels, "IDX file of labels");
  app.add_option("--images", arguments.images, "IDX file of 28 x 28 images (default: draw digits)")->needs(labels);
  app.add_option("--inject", arguments.run.faults, "fault to inject, such as rank=1,step=30,fault=kill");
  CLI11_PARSE(app, argc, argv);
  if (!arguments.run.devices.empty()) arguments.run.replicas = 0;  // one for each of them
  arguments.run.seed = arguments.seed;
  return supervise(argc, argv, arguments.run, [&](Replica& replica) { train(replica, arguments); });
}
