// What shards leave of their gradients is added as if each had computed it.

#include "train/step/deferred_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>

#include "compute/backend.h"
#include "holdfast/core/memory_space.h"
#include "support/passes.h"
#include "unit/train/support/small_training.h"

namespace holdfast {
namespace {

constexpr compute::DenseShape kDenseOfShards = {.rows = 5, .inputs = 1100, .outputs = 1000};
constexpr std::size_t kKernelOfShards = 32;  // where the gradient begins

std::vector<float> numbers_of_shard(std::int64_t count, int shard, float scale = 1) {
  Random random(3, Purpose::user, 0, static_cast<std::uint64_t>(shard));
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& number : numbers) number = random.normal() * scale;
  return numbers;
}

// Shards of one dense layer, whole and left to their sum.
class SumsOfShards {
 public:
  explicit SumsOfShards(int shards) : shards_(shards) {
    deferred_.begin(shards, limits());
    for (int shard = 0; shard < shards; ++shard) compute_shard(shard, 1);
  }

  // Computes a shard anew from larger numbers.
  void compute_shard(int shard, float scale) {
    const std::vector<float> input = numbers_of_shard(kDenseOfShards.rows * kDenseOfShards.inputs, 2 * shard, scale);
    const std::vector<float> gradient =
        numbers_of_shard(kDenseOfShards.rows * kDenseOfShards.outputs, 2 * shard + 1, scale);
    whole_.resize(static_cast<std::size_t>(shards_));
    std::vector<float>& whole = whole_[static_cast<std::size_t>(shard)];
    whole.assign(kKernelOfShards + kDenseOfShards.inputs * kDenseOfShards.outputs, 0);
    std::vector<float> bias(kDenseOfShards.outputs);
    backend_->defer_products(nullptr);
    operation_->backward_weights(input.data(), gradient.data(), whole.data() + kKernelOfShards, bias.data());
    compute::DeferredProducts& products = deferred_.of(shard);
    products.reset(limits());
    products.begin(whole, kernels_);
    backend_->defer_products(&products);
    operation_->backward_weights(input.data(), gradient.data(), whole.data() + kKernelOfShards, bias.data());
  }

  // Whether the layer has left its gradient, which depends on the processor.
  bool are_there() { return !deferred_.of(0).products().empty(); }
  DeferredSums& deferred() { return deferred_; }

  std::vector<float> expected(ShardRange node) const {
    std::vector<float> sum = whole_[static_cast<std::size_t>(node.begin)];
    if (node.count() == 1) return sum;
    const auto children = ShardTree::children(node);
    sum = expected(children.first);
    host_memory().add(expected(children.second), sum);
    return sum;
  }

 private:
  compute::DeferralLimits limits() const {
    return {.least_samples = kDenseOfShards.rows,
            .most_samples = kDenseOfShards.rows,
            .all_samples = kDenseOfShards.rows * shards_};
  }

  const int shards_;
  const std::vector<std::size_t> kernels_ = {kKernelOfShards};
  const std::unique_ptr<compute::Backend> backend_ = compute::make_cpu_backend(1);
  const std::unique_ptr<compute::DenseOperation> operation_ = backend_->dense(kDenseOfShards, {.training = true});
  DeferredSums deferred_;
  std::vector<std::vector<float>> whole_;
};

bool are_same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

TEST(DeferredSums, HaveTheBitsOfTheTree) {
  for (int shards = 1; shards <= 7; ++shards) {
    SumsOfShards sums(shards);
    if (!sums.are_there()) GTEST_SKIP() << "oneDNN has other products on this processor";
    const std::vector<float> expected = sums.expected({0, shards});
    // One float further, sums are not at the beginning of a cache line.
    for (const std::size_t shift : {0, 1}) {
      std::vector<float> memory(expected.size() + shift, 0);
      const std::span<float> sum(memory.data() + shift, expected.size());

      const std::optional<bool> is_finite = sums.deferred().add({0, shards}, sum, pass_in_pieces);

      EXPECT_EQ(is_finite, shards == 1 ? std::nullopt : std::optional(true));
      EXPECT_TRUE(are_same_bits(sum, expected)) << shards << " shards";
    }
  }
}

TEST(DeferredSums, AddTheShardsOfANodeAlone) {
  SumsOfShards sums(3);
  if (!sums.are_there()) GTEST_SKIP() << "oneDNN has other products on this processor";
  for (const ShardRange node : {ShardRange{0, 2}, ShardRange{2, 3}}) {
    const std::vector<float> expected = sums.expected(node);
    std::vector<float> sum(expected.size(), 0);

    sums.deferred().add(node, sum, pass_alone);

    EXPECT_TRUE(are_same_bits(sum, expected)) << node.begin;
  }
  ASSERT_EQ(sums.deferred().ranges_of(1).size(), 1U);
  EXPECT_EQ(sums.deferred().ranges_of(1)[0].begin, kKernelOfShards);
  EXPECT_EQ(sums.deferred().ranges_of(1)[0].end, kKernelOfShards + 1100 * 1000);
}

TEST(DeferredSums, SayWhetherTheyAreFinite) {
  SumsOfShards sums(2);
  if (!sums.are_there()) GTEST_SKIP() << "oneDNN has other products on this processor";
  std::vector<float> sum(sums.expected({0, 2}).size(), 0);
  // Products of numbers of this size are beyond the range of floats.
  sums.compute_shard(1, 1e30F);

  EXPECT_EQ(sums.deferred().add({0, 2}, sum, pass_in_pieces), std::optional(false));

  sums.deferred().begin(2, {});
  EXPECT_EQ(sums.deferred().add({0, 2}, sum, pass_in_pieces), std::nullopt) << "nothing was left";
}

// Kernels of a size that shards of one process leave to their sum, and one that they do not. The last batch is short,
// so its last shard has no samples where there are four.
Outcome train_wide(Replica& replica) {
  const Value x = input({1030});
  const Value y = Dense{1100, {.activation = Activation::tanh}}(Dropout{0.25F}(x));
  const Value z = Dense{1030, {.activation = Activation::relu, .kernel_regularizer = Regularizer::l2(1e-4F)}}(y);
  Trainer trainer(replica, Model(x, Dense{3}(z)), Adam(1e-3F), MeanSquaredError{});
  std::vector<float> features(19 * 1030), targets(19 * 3);
  Random random(5, Purpose::user, 0, 0);
  for (float& number : features) number = random.normal();
  for (float& number : targets) number = random.normal();
  const FitResult fit = trainer.fit(
      from_tensors(Tensor(Shape{19, 1030}, features), Tensor(Shape{19, 3}, targets)).batch(8), {.epochs = 2});
  return {trainer.weights_digest().hex(), trainer.step(), fit.results, {}, fit.history};
}

// The first sample is so large that the gradient of the wide kernel overflows, and nothing else does: the kernel is
// zeros, so the sample does not reach the outputs.
TEST(DeferredSums, HaveAStepSkippedThatIsNotFiniteThereAlone) {
  const auto train = [](Replica& replica) {
    const Value x = input({1030});
    const Value y = Dense{1100, {.kernel_initializer = Initializer::zeros()}}(x);
    Trainer trainer(replica, Model(x, Dense{3}(y)), SGD(1e-3F), MeanSquaredError{});
    Tensor features{Shape{16, 1030}}, targets{Shape{16, 3}};
    for (float& number : features.values()) number = 0.01F;
    for (float& number : targets.values()) number = 1e15F;
    for (float& number : features.sample(0)) number = 1e30F;
    const FitResult fit = trainer.fit(from_tensors(std::move(features), std::move(targets)).batch(8),
                                      {.when_not_finite = WhenNotFinite::skip_step});
    return Outcome{trainer.weights_digest().hex(), trainer.step(), fit.results, {}, fit.history};
  };
  const Outcome expected = outcomes_of({.replicas = 2, .shards = 2}, train).front();
  const Outcome actual = outcomes_of({.replicas = 1, .shards = 2}, train).front();

  expect_equal(actual, expected);
  EXPECT_EQ(actual.step, 2);
  EXPECT_TRUE(std::isfinite(actual.results.at("loss")));
}

// Shards of 4 and 5 samples of 64 positions each: one of the two had few enough rows, and the other had not.
TEST(DeferredSums, ChangeNoBitOfATrainingOnPositions) {
  const auto train = [](Replica& replica) {
    const Value x = input({64, 1024});
    Trainer trainer(replica, Model(x, Dense{1}(Dense{1030, {.activation = Activation::tanh}}(x))), SGD(0.01F),
                    MeanSquaredError{});
    std::vector<float> features(9 * 64 * 1024), targets(9 * 64);
    Random random(6, Purpose::user, 0, 0);
    for (float& number : features) number = random.normal();
    for (float& number : targets) number = random.normal();
    const FitResult fit =
        trainer.fit(from_tensors(Tensor(Shape{9, 64, 1024}, features), Tensor(Shape{9, 64, 1}, targets)).batch(9));
    return Outcome{trainer.weights_digest().hex(), trainer.step(), fit.results, {}, fit.history};
  };
  const Outcome expected = outcomes_of({.replicas = 2, .shards = 2}, train).front();

  for (const int workers : {1, 2})
    expect_equal(outcomes_of({.replicas = 1, .shards = 2, .workers = workers}, train).front(), expected);
}

// A replica with one shard leaves nothing. One leaves all shards to one sum; two and three have some nodes each.
TEST(DeferredSums, ChangeNoBitOfATraining) {
  for (const int shards : {2, 3, 4}) {
    const auto trained = [&](int replicas, int workers) {
      return outcomes_of({.replicas = replicas, .shards = shards, .workers = workers}, train_wide);
    };
    const Outcome expected = trained(shards, 1).front();
    for (const auto& [replicas, workers] : {std::pair(1, 1), {1, 2}, {1, 3}, {2, 1}, {2, 2}, {3, 2}}) {
      if (replicas >= shards) continue;
      for (const Outcome& outcome : trained(replicas, workers)) expect_equal(outcome, expected);
    }
  }
}

}  // namespace
}  // namespace holdfast
