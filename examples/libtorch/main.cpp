// Modules of LibTorch are mirrored, killed and recovered:
//
//   libtorch [--model resnet|transformer] [--replicas N] [--shards N] [--steps N] [--seed N] [--run-dir DIR]
//            [--report FILE] [--inject rank=1,step=30,fault=kill]

#include <holdfast/holdfast.h>
#include <holdfast/torch.h>

#include "drawn_digits.h"
#include "example_options.h"
#include "models.h"

namespace {

constexpr int64_t kBatch = 32;

void fit(holdfast::Replica& replica, holdfast::Trainable& model, const holdfast::Dataset& data,
         const ExampleOptions& options) {
  holdfast::Trainer trainer(replica, model);
  // One epoch has as many batches as the user wants steps: the data sets are made so long.
  const holdfast::FitResult fit = trainer.fit(
      data.shuffle().batch(kBatch), {.epochs = 1, .callbacks = {holdfast::ModelCheckpoint({.every_steps = 20})}});
  if (replica.is_primary()) write_report(trainer, {{"loss", fit.results.at("loss")}}, options);
}

void train_resnet(holdfast::Replica& replica, const ExampleOptions& options) {
  holdfast::torch::TrainableModule<ResNet> model({
      .inputs = {{.name = {}, .shape = {28, 28, 1}}},
      .targets = {{.name = {}, .shape = {}}},
      .loss =
          [](const torch::Tensor& output, const holdfast::torch::Batch& batch) {
            return torch::cross_entropy_loss(output, batch.target().to(torch::kLong));
          },
      .optimizer =
          [](ResNet& net) {
            return std::make_unique<torch::optim::SGD>(net.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
          },
      // The network has no dropout, so the shards of a process may be computed at once.
      .draws = false,
  });
  fit(replica, model, drawn_digits(options.steps * kBatch, options.run.seed), options);
}

// Each token follows from the two before it, apart from one in eight.
holdfast::Dataset sequences(int64_t samples, uint64_t seed) {
  std::vector<int32_t> tokens;
  for (int64_t sample = 0; sample < samples; ++sample) {
    holdfast::Random random(seed, holdfast::Purpose::user, 0, static_cast<uint64_t>(sample));
    for (int64_t i = 0; i < Transformer::kLength + 1; ++i) {
      const std::size_t end = tokens.size();
      const bool is_drawn = i < 2 || random.below(8) == 0;
      tokens.push_back(is_drawn ? static_cast<int32_t>(random.below(Transformer::kTokens))
                                : (tokens[end - 1] + 3 * tokens[end - 2]) % Transformer::kTokens);
    }
  }
  const holdfast::Tensor all({samples, Transformer::kLength + 1}, tokens);
  // The same array twice: what follows a token stands in the sample itself.
  return holdfast::from_tensors({{"tokens", all}}, {{"tokens", all}});
}

void train_transformer(holdfast::Replica& replica, const ExampleOptions& options) {
  const holdfast::ArraySpec tokens{
      .name = "tokens", .shape = {Transformer::kLength + 1}, .dtype = holdfast::DType::i32};
  holdfast::torch::TrainableModule<Transformer> model({
      .inputs = {tokens},
      .targets = {tokens},
      .forward =
          [](Transformer& net, const holdfast::torch::Batch& batch) {
            return holdfast::torch::Outputs(net.forward(batch.input().narrow(1, 0, Transformer::kLength)));
          },
      .loss =
          [](const torch::Tensor& output, const holdfast::torch::Batch& batch) {
            const torch::Tensor next = batch.target().narrow(1, 1, Transformer::kLength).to(torch::kLong);
            return torch::cross_entropy_loss(output.flatten(0, 1), next.flatten());
          },
      .optimizer = [](Transformer& net) { return std::make_unique<torch::optim::AdamW>(net.parameters(), 3e-3); },
  });
  fit(replica, model, sequences(options.steps * kBatch, options.run.seed), options);
}

}  // namespace

int main(int argc, char** argv) {
  ExampleOptions options = {.description = "A module of LibTorch that is mirrored, killed and recovered.",
                            .run = {.replicas = 2, .run_directory = "libtorch-run", .shards = 4},
                            .steps = 100,
                            .models = {"resnet", "transformer"},
                            .model = "resnet"};
  if (const std::optional<int> exit_code = read_options(argc, argv, options)) return *exit_code;
  return holdfast::supervise(argc, argv, options.run, [&](holdfast::Replica& replica) {
    options.model == "resnet" ? train_resnet(replica, options) : train_transformer(replica, options);
  });
}
