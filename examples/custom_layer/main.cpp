// A layer of one's own, described with functions of values: its gradient, its code for devices and its place in files
// come with it.
//
//   custom_layer [--replicas N | --devices D,D...] [--shards N] [--steps N] [--seed N] [--run-dir DIR] [--report FILE]
//                [--inject rank=1,step=30,fault=kill]

#include "example_options.h"
#include "holdfast/holdfast.h"

namespace {

using namespace holdfast;

// The gated unit of Shazeer, "GLU Variants Improve Transformer", 2020: silu(x gate) * (x up), for vectors x.
class SwiGlu final : public LayerOf<SwiGlu> {
 public:
  explicit SwiGlu(std::int64_t units, const std::string& name = {}) : LayerOf(name), units_(units) {}
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config) {
    return std::make_shared<const SwiGlu>(config.integer("units"), name);
  }

  std::string_view kind() const override { return "custom_layer.SwiGlu"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override {
    const Value& x = inputs[0];
    const Shape shape = {x.shape()[x.shape().rank() - 1], units_};
    const Fans fans = {.in = shape[0], .out = units_};
    const Value gate = builder.parameter("gate", shape, Initializer::glorot_uniform(), fans);
    const Value up = builder.parameter("up", shape, Initializer::glorot_uniform(), fans);
    return {silu(matmul(x, gate)) * matmul(x, up)};
  }
  void write_config(ConfigWriter& config) const override { config.integer("units", units_); }

 private:
  std::int64_t units_;
};

// Files name the layer; this makes the name known to load_model().
const bool is_registered = register_layer<SwiGlu>("custom_layer.SwiGlu");

constexpr std::int64_t kBatch = 32;
constexpr std::int64_t kFeatures = 8;

// y = x0 x1 - x2, which no linear model learns.
Dataset products(std::int64_t count, std::uint64_t seed) {
  Tensor features(Shape{count, kFeatures});
  Tensor targets(Shape{count, 1});
  for (std::int64_t i = 0; i < count; ++i) {
    Random random(seed, Purpose::synthetic_data, 0, static_cast<std::uint64_t>(i));
    const std::span<float> x = features.sample(i);
    for (float& feature : x) feature = random.normal();
    targets.sample(i)[0] = x[0] * x[1] - x[2];
  }
  return from_tensors(std::move(features), std::move(targets));
}

void train(Replica& replica, const ExampleOptions& options) {
  const Value x = input({kFeatures});
  const Model model(x, Dense{1}(SwiGlu{16}(SwiGlu{16}(x) + Dense{16}(x))));
  Trainer trainer(replica, model, Adam{5e-3F}, MeanSquaredError{});
  const FitResult fit = trainer.fit(products(options.steps * kBatch, options.run.seed).batch(kBatch),
                                    {.epochs = 1, .callbacks = {ModelCheckpoint({.every_steps = 50})}});
  if (!replica.is_primary()) return;
  write_report(trainer, {{"loss", fit.results.at("loss")}}, options);
}

}  // namespace

int main(int argc, char** argv) {
  ExampleOptions options = {.description = "A model with a layer of its own that is mirrored, killed and recovered.",
                            .run = {.replicas = 2, .run_directory = "custom-layer-run", .shards = 4},
                            .steps = 200};
  if (const std::optional<int> exit_code = read_options(argc, argv, options)) return *exit_code;
  return supervise(argc, argv, options.run, [&](Replica& replica) { train(replica, options); });
}
