// A model with two inputs, two outputs and sample weights learns which user likes which item:
//
//   two_towers [--replicas N | --devices D,D...] [--shards N] [--steps N] [--seed N] [--run-dir DIR] [--report FILE]
//              [--inject rank=1,step=30,fault=kill]

#include "example_options.h"
#include "holdfast/holdfast.h"

namespace {

using namespace holdfast;

constexpr std::int64_t kBatch = 32;
constexpr std::int64_t kUsers = 200;
constexpr std::int64_t kItems = 50;
constexpr std::int64_t kTraits = 3;  // of an item, besides its number

// Each tower makes a vector. Their product says how well user and item fit.
Model two_towers() {
  const Value user = input({1}, {.dtype = DType::i32, .name = "user"});
  const Value item = input({1}, {.dtype = DType::u16, .name = "item"});
  const Value traits = input({kTraits}, {.name = "traits"});

  const Value of_user = Dense{16}(Flatten{}(Embedding{kUsers, 16}(user)));
  const Value of_item = Dense{16}(Concatenate{}(Flatten{}(Embedding{kItems, 13}(item)), traits));
  const Value both = Dropout{0.1F}(of_user * of_item);
  return Model({user, item, traits}, {Dense{1, {.name = "liked"}}(both), Dense{1, {.name = "stars"}}(both)});
}

// What a user thinks of an item, for examples without a file: a function of the seed.
Dataset opinions(std::int64_t samples, std::uint64_t seed) {
  std::vector<std::int32_t> users;
  std::vector<std::uint16_t> items;
  std::vector<float> traits;
  std::vector<std::uint8_t> liked;
  std::vector<float> stars;
  std::vector<float> weights;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    Random random(seed, Purpose::user, 0, static_cast<std::uint64_t>(sample));
    users.push_back(static_cast<std::int32_t>(random.below(kUsers)));
    items.push_back(static_cast<std::uint16_t>(random.below(kItems)));
    const auto fit = static_cast<float>((users.back() % 7 - 3) * (items.back() % 5 - 2)) / 3;
    for (std::int64_t trait = 0; trait < kTraits; ++trait) traits.push_back(fit + random.normal());
    liked.push_back(fit + 0.3F * random.normal() > 0 ? 1 : 0);
    stars.push_back(3 + fit);
    // Opinions without a date do not count, and old ones count less.
    weights.push_back(sample % 7 == 0 ? 0.0F : sample % 2 == 0 ? 0.5F : 1.0F);
  }
  return from_tensors({{"user", Tensor({samples, 1}, users)},
                       {"item", Tensor({samples, 1}, items)},
                       {"traits", Tensor({samples, kTraits}, traits)}},
                      {{"liked", Tensor({samples, 1}, liked)}, {"stars", Tensor({samples, 1}, stars)}},
                      Tensor({samples}, weights));
}

void train(Replica& replica, const ExampleOptions& options) {
  Trainer trainer(replica, two_towers(), Adam{{.learning_rate = 0.01F}},
                  {BinaryCrossentropy{{.from_logits = true}}, {MeanSquaredError{}, 0.5F}},
                  {{BinaryAccuracy{{.threshold = 0}}, "liked"}, {MeanAbsoluteError{}, "stars"}});
  const FitResult fit = trainer.fit(opinions(options.steps * kBatch, options.run.seed).shuffle().batch(kBatch),
                                    {.epochs = 1, .callbacks = {ModelCheckpoint({.every_steps = 20})}});
  if (!replica.is_primary()) return;
  write_report(trainer,
               {{"loss", fit.results.at("loss")},
                {"liked_binary_accuracy", fit.results.at("liked_binary_accuracy")},
                {"stars_loss", fit.results.at("stars_loss")}},
               options);
}

}  // namespace

int main(int argc, char** argv) {
  ExampleOptions options = {.description = "A two-tower model that is mirrored, killed and recovered.",
                            .run = {.replicas = 2, .run_directory = "two-towers-run", .shards = 4},
                            .steps = 100};
  if (const std::optional<int> exit_code = read_options(argc, argv, options)) return *exit_code;
  return supervise(argc, argv, options.run, [&](Replica& replica) { train(replica, options); });
}
