#include "nn/layers/layer_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/input.h"
#include "holdfast/nn/layer_builder.h"
#include "holdfast/nn/layer_config.h"
#include "holdfast/nn/sequential.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

// A layer of an application.
class Scale final : public LayerOf<Scale> {
 public:
  explicit Scale(float start, const std::string& name = {}) : LayerOf(name), start_(start) {}
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config) {
    return std::make_shared<const Scale>(config.number("start"), name);
  }

  std::string_view kind() const override { return "registry_test.Scale"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override {
    return {inputs[0] * builder.parameter("scale", {1}, Initializer::ones()) + start_};
  }
  void write_config(ConfigWriter& config) const override { config.number("start", start_); }

 private:
  float start_;
};

TEST(LayerRegistry, ALayerOfAnApplicationIsReadFromAFileOnceItIsRegistered) {
  const Sequential model{Input{3}, Scale{0.5F}};
  EXPECT_THAT(
      refusal([&] { Sequential::from_graph(model.graph()); }),
      HasSubstr("\"registry_test.Scale\" is not a kind of layer that this version knows; a layer of your own must "
                "be registered"));

  EXPECT_TRUE(register_layer<Scale>("registry_test.Scale"));

  EXPECT_EQ(Sequential::from_graph(model.graph()).graph(), model.graph());
  EXPECT_THAT(refusal([] { register_layer<Scale>("registry_test.Scale"); }), HasSubstr("is registered already"));
}

TEST(LayerRegistry, KindsOfApplicationsHaveADot) {
  EXPECT_THAT(refusal([] { register_layer<Scale>("Scale"); }), HasSubstr("it needs a dot, as \"my_app.Scale\""));
}

// A layer of an application that doubles, under any kind.
class Doubling final : public LayerOf<Doubling> {
 public:
  explicit Doubling(std::string kind) : LayerOf(""), kind_(std::move(kind)) {}
  std::string_view kind() const override { return kind_; }
  std::vector<Value> build(LayerBuilder&, std::span<const Value> inputs) const override { return {inputs[0] * 2.0F}; }
  void write_config(ConfigWriter&) const override {}

 private:
  std::string kind_;
};

// A file would name the layer of Holdfast, which computes something else.
TEST(LayerRegistry, LayersOfApplicationsHaveADotInTheirKind) {
  EXPECT_EQ(refusal([] { (Sequential{Input{3}, Doubling("registry_test.Doubling")}); }), "");
  EXPECT_THAT(refusal([] {
                (Sequential{Input{3}, Doubling("Flatten")});
              }),
              HasSubstr("has the kind \"Flatten\", which is that of a layer of Holdfast; let its kind() return a name "
                        "with a dot, as \"my_app.Flatten\""));
  EXPECT_THAT(refusal([] { Doubling("Twice")(input({3})); }), HasSubstr("has the kind \"Twice\", which has no dot"));
}

}  // namespace
}  // namespace holdfast
