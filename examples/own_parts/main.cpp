// A loss, a metric, a learning rate and a callback of one's own: the model learns the value that nine of ten targets
// stay below.
//
//   own_parts [RUN_DIRECTORY]

#include <holdfast/holdfast.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace holdfast;

namespace {

constexpr float kShare = 0.9F;

// The loss of a quantile (Koenker and Bassett, "Regression Quantiles", 1978).
const LossFunction quantile("quantile",
                            [](const Value& outputs, const Value& targets) {
                              const Value missing = targets - outputs;
                              return maximum(kShare * missing, (kShare - 1.0F) * missing);
                            },
                            {.numbers = {{"share", kShare}}});

// Which targets stay below, as ones and zeros, of which the mean is reported.
const MetricFunction share_below("share_below",
                                 [](const Value& outputs, const Value& targets) { return less(targets, outputs); });

// Halves the rate every 200 updates.
class Halving final : public LearningRateSchedule {
 public:
  std::string configuration() const override { return R"({"kind":"halving"})"; }
  std::unique_ptr<LearningRateSchedule> clone() const override { return std::make_unique<Halving>(*this); }
  float rate_after(std::int64_t updates) const override { return std::ldexp(0.02F, -static_cast<int>(updates / 200)); }
};

// Remembers the epoch whose share was nearest to the one that is wanted. The savepoints hold both members.
class Nearest final : public Callback {
 public:
  std::string name() const override { return "nearest"; }
  std::vector<std::string> monitors() const override { return {"share_below"}; }
  void describe_state(CallbackFields& fields) override { fields.add("epoch", epoch_).add("distance", distance_); }

  void on_epoch_end(TrainingContext& context, const Logs& logs) override {
    const double distance = std::abs(logs.at("share_below") - kShare);
    if (distance >= distance_) return;
    distance_ = distance;
    epoch_ = context.epoch();
  }
  void on_fit_end(TrainingContext& context, const Logs&) override {
    if (context.is_primary()) std::printf("epoch %ld was nearest, by %.4f\n", static_cast<long>(epoch_), distance_);
  }

 private:
  std::int64_t epoch_ = -1;
  double distance_ = 1;
};

// y = x + noise that grows with x.
Dataset samples() {
  constexpr std::int64_t kCount = 2000;
  Tensor x{Shape{kCount, 1}};
  Tensor y{Shape{kCount, 1}};
  for (std::int64_t i = 0; i < kCount; ++i) {
    Random random(1, Purpose::user, 0, static_cast<std::uint64_t>(i));
    x.sample(i)[0] = random.uniform();
    y.sample(i)[0] = x.sample(i)[0] * (1 + 0.5F * random.normal());
  }
  return from_tensors(std::move(x), std::move(y));
}

}  // namespace

int main(int argc, char** argv) {
  const SuperviseOptions options{.replicas = 2, .run_directory = argc > 1 ? argv[1] : "own-parts-run", .shards = 2};
  return supervise(argc, argv, options, [](Replica& replica) {
    const Sequential model{Input{1}, Dense{16, {.activation = Activation::tanh}}, Dense{1}};
    Trainer trainer{replica, model, Adam{Halving{}}, quantile, {share_below}};
    const FitResult fit =
        trainer.fit(samples().shuffle().batch(100), {.epochs = 30, .callbacks = {ModelCheckpoint{}, Nearest{}}});
    if (replica.is_primary()) {
      std::printf("%.4f of the targets are below; weights %s\n", fit.results.at("share_below"),
                  trainer.weights_digest().hex().c_str());
    }
  });
}
