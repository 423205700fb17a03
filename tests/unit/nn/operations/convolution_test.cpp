// The functions of values; layers test the numbers of all options.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer_builder.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/convolution_case.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A layer of a test's own: a function of its input and of a kernel.
class KernelFunction final : public LayerOf<KernelFunction> {
 public:
  using Function = std::function<Value(const Value& x, const Value& kernel)>;

  KernelFunction(Shape kernel, Function function)
      : LayerOf(""), kernel_(std::move(kernel)), function_(std::move(function)) {}

  std::string_view kind() const override { return "test.KernelFunction"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override {
    return {function_(inputs[0], builder.parameter("kernel", kernel_, Initializer::zeros()))};
  }
  void write_config(ConfigWriter&) const override {}

 private:
  const Shape kernel_;
  const Function function_;
};

TEST(Convolution, IsAFunctionOfValues) {
  const KernelFunction strided({2, 1, 1}, [](const Value& x, const Value& kernel) {
    return convolution(x, kernel, {.strides = {2}, .padding = Padding::same});
  });

  // x = -5, 2, -2, 5, 1 and kernel -3, 2.
  EXPECT_THAT(outputs_of_pattern({5, 1}, strided), ElementsAre(19, 16, -3));
}

TEST(TransposedConvolution, IsAFunctionOfValues) {
  const KernelFunction transposed({2, 1, 1}, [](const Value& x, const Value& kernel) {
    return transposed_convolution(x, kernel, {.strides = {2}});
  });

  EXPECT_THAT(outputs_of_pattern({3, 1}, transposed), ElementsAre(15, -10, -6, 4, 6, -4));
}

TEST(Convolution, RefusesKernelsThatDoNotFit) {
  const auto refusal_of = [](const Shape& sample, const Shape& kernel, const ConvolutionOptions& options) {
    const KernelFunction layer(kernel, [&](const Value& x, const Value& k) { return convolution(x, k, options); });
    return refusal([&] { (Sequential{Input(sample), layer}); });
  };

  EXPECT_THAT(refusal_of({5, 3}, {2, 4, 6}, {}), HasSubstr("a kernel [2, 4, 6] does not fit 3 channels in 1 groups"));
  EXPECT_THAT(refusal_of({5, 4}, {2, 2, 3}, {.groups = 2}), HasSubstr("does not fit 4 channels in 2 groups"));
  EXPECT_THAT(refusal_of({5, 4}, {2, 4, 3}, {.strides = {1, 2}}),
              HasSubstr("it needs strides of 1 numbers, one for each spatial axis, not 1, 2"));
  EXPECT_THAT(refusal_of({5, 4}, {4, 3}, {}), HasSubstr("of one to three spatial axes, not [4, 3]"));
}

TEST(Convolution, RefusesAKernelWithSamples) {
  EXPECT_THAT(refusal([] {
                convolution(input({5, 4}), input({2, 4, 3}));
              }),
              HasSubstr("convolution() needs a value with samples and a kernel without, such as a parameter"));
}

TEST(TransposedConvolution, RefusesAKernelThatDoesNotFit) {
  const KernelFunction layer({2, 3, 5},
                             [](const Value& x, const Value& kernel) { return transposed_convolution(x, kernel); });

  EXPECT_THAT(refusal([&] {
                (Sequential{Input{5, 4}, layer});
              }),
              HasSubstr("a kernel [2, 3, 5] does not fit 4 channels; it needs them on its last axis"));
}

}  // namespace
}  // namespace holdfast
