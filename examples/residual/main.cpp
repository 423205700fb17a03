// A small residual network (He et al., "Deep Residual Learning for Image Recognition", 2015) learns digits:
//
//   residual [--replicas N | --devices D,D...] [--shards N] [--steps N] [--seed N] [--run-dir DIR] [--report FILE]
//            [--images FILE --labels FILE] [--inject rank=1,step=30,fault=kill]

#include "drawn_digits.h"
#include "example_options.h"
#include "holdfast/holdfast.h"
#include "residual_network.h"

namespace {

using namespace holdfast;

constexpr std::int64_t kBatch = 32;

Dataset digits(const ExampleOptions& options) {
  if (options.images.empty()) return drawn_digits(options.steps * kBatch, options.run.seed);
  return read_idx(options.images, options.labels);
}

void train(Replica& replica, const ExampleOptions& options) {
  const Model model = residual_network();
  Trainer trainer(replica, model, SGD{{.learning_rate = 0.05F, .momentum = 0.9F}},
                  SparseCategoricalCrossentropy({.from_logits = true}));
  const FitResult fit = trainer.fit(digits(options).shuffle().batch(kBatch),
                                    {.epochs = 1, .callbacks = {ModelCheckpoint({.every_steps = 20})}});
  if (!replica.is_primary()) return;
  write_report(trainer, {{"loss", fit.results.at("loss")}}, options);
}

}  // namespace

int main(int argc, char** argv) {
  ExampleOptions options = {
      .run = {.replicas = 2, .run_directory = "residual-run", .shards = 4}, .steps = 100, .takes_images = true};
  if (const std::optional<int> exit_code = read_options(argc, argv, options)) return *exit_code;
  return supervise(argc, argv, options.run, [&](Replica& replica) { train(replica, options); });
}
