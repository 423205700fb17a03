// Convolutions on a device at each precision, within derived tolerances of the host's.

#include <algorithm>
#include <ostream>
#include <tuple>

#include "compute/arithmetic/direct_convolution.h"
#include "gpu/layers/support/layer_test.h"

namespace holdfast::compute {
namespace {

struct Case {
  std::string name;
  ConvolutionShape shape;
};

void PrintTo(const Case& tested, std::ostream* out) {
  *out << tested.name;
}

class DeviceConvolution : public LayerTest, public testing::WithParamInterface<std::tuple<Case, Precision>> {
 protected:
  Precision precision() const override { return std::get<Precision>(GetParam()); }

  struct Arrays {
    Floats output, input_gradient, kernel_gradient, bias_gradient;
  };

  DeviceConvolution()
      : shape_(std::get<Case>(GetParam()).shape),
        plan_(shape_),
        windows_(plan_.windows()),
        window_elements_(plan_.kernel_elements() / plan_.filters),
        input_(values(1, plan_.inputs())),
        kernel_(values(2, window_elements_ * shape_.filters)),
        bias_(values(3, shape_.filters)),
        output_gradient_(values(4, windows_ * shape_.filters)) {}

  Arrays on_host() {
    const auto operation = host().convolution(shape_, {.training = true, .input_gradient = true});
    const Floats input = factors_of(input_), kernel = factors_of(kernel_), gradient = factors_of(output_gradient_);
    Arrays arrays = {output_gradient_, input_, kernel_, bias_};
    Floats unused = kernel_;
    operation->forward(input.data(), kernel.data(), bias_.data(), arrays.output.data());
    operation->backward_input(kernel.data(), gradient.data(), arrays.input_gradient.data());
    operation->backward_weights(input.data(), gradient.data(), arrays.kernel_gradient.data(),
                                arrays.bias_gradient.data());
    // The gradient of the bias is not a product.
    operation->backward_weights(input.data(), output_gradient_.data(), unused.data(), arrays.bias_gradient.data());
    return arrays;
  }

  Arrays on_device() {
    const auto operation = backend().convolution(shape_, {.training = true, .input_gradient = true});
    const DeviceArray input = upload(input_), kernel = upload(kernel_), bias = upload(bias_),
                      gradient = upload(output_gradient_), result = output(windows_ * shape_.filters),
                      input_gradient = output(static_cast<std::int64_t>(input_.size())),
                      kernel_gradient = output(static_cast<std::int64_t>(kernel_.size())),
                      bias_gradient = output(shape_.filters);
    operation->forward(input.data(), kernel.data(), bias.data(), result.data());
    operation->backward_input(kernel.data(), gradient.data(), input_gradient.data());
    operation->backward_weights(input.data(), gradient.data(), kernel_gradient.data(), bias_gradient.data());
    return {result.values(), input_gradient.values(), kernel_gradient.values(), bias_gradient.values()};
  }

  // Winograd's and Fourier's methods add a few roundings of their own. cuDNN's results in bf16 are rounded to 8 bits,
  // with an error of up to 2^-9, or of 2^-8 if a sum in another order rounds to the neighbour. Before the bias is added
  // the result may be twice as large.
  float tolerance(const Floats& expected, std::int64_t terms) const {
    const float products = product_tolerance(precision(), terms, 8);
    const float sums = precision() == Precision::tf32 ? 4 * products : products;
    if (precision() != Precision::bf16) return sums;
    const auto less = [](float a, float b) { return std::abs(a) < std::abs(b); };
    return sums + 0x1p-7F * std::abs(*std::max_element(expected.begin(), expected.end(), less));
  }

  const ConvolutionShape shape_;
  const DirectConvolution plan_;
  const std::int64_t windows_;
  const std::int64_t window_elements_;
  const Floats input_, kernel_, bias_, output_gradient_;
};

TEST_P(DeviceConvolution, GivesTheHostsNumbers) {
  const Arrays expected = on_host();

  const Arrays actual = on_device();

  EXPECT_EQ(differences(expected.output, actual.output, tolerance(expected.output, window_elements_)), "");
  const std::int64_t terms = plan_.kernel_elements() / plan_.group_channels;
  EXPECT_EQ(differences(expected.input_gradient, actual.input_gradient, tolerance(expected.input_gradient, terms)), "");
  EXPECT_EQ(
      differences(expected.kernel_gradient, actual.kernel_gradient, tolerance(expected.kernel_gradient, windows_)), "");
  EXPECT_EQ(differences(expected.bias_gradient, actual.bias_gradient, sum_tolerance(windows_)), "");
}

TEST_P(DeviceConvolution, GivesTheSameBitsEachTime) {
  const Arrays first = on_device(), second = on_device();

  EXPECT_EQ(bit_differences(first.output, second.output), "");
  EXPECT_EQ(bit_differences(first.input_gradient, second.input_gradient), "");
  EXPECT_EQ(bit_differences(first.kernel_gradient, second.kernel_gradient), "");
  EXPECT_EQ(bit_differences(first.bias_gradient, second.bias_gradient), "");
}

ConvolutionShape grouped(ConvolutionShape shape, std::int64_t groups) {
  shape.groups = groups;
  return shape;
}

ConvolutionShape dilated(ConvolutionShape shape, std::int64_t dilation) {
  shape.dilation_height = shape.dilation_width = dilation;
  return shape;
}

ConvolutionShape volume(ConvolutionShape shape, std::int64_t depth, std::int64_t kernel_depth) {
  shape.depth = depth;
  shape.kernel_depth = kernel_depth;
  return shape;
}

const auto kCases = testing::Values(Case{"Narrow", {1, 5, 4, 3, 6, 3, 2, 1, 1, Padding::same, true}},
                                    Case{"Strided", {2, 6, 5, 2, 3, 3, 3, 2, 2, Padding::same, true}},
                                    Case{"Unpadded", {1, 7, 6, 1, 6, 5, 5, 1, 1, Padding::valid, true}},
                                    Case{"Wide", {1, 3, 3, 16, 16, 2, 2, 1, 1, Padding::same, true}},
                                    Case{"FirstOfLeNet", {128, 28, 28, 1, 6, 5, 5, 1, 1, Padding::same, true}},
                                    Case{"SecondOfLeNet", {128, 14, 14, 6, 16, 5, 5, 1, 1, Padding::valid, true}},
                                    Case{"PaddedUnevenly", {8, 28, 28, 6, 16, 4, 4, 1, 1, Padding::same, true}},
                                    Case{"Pointwise", {8, 7, 6, 16, 33, 1, 1, 1, 1, Padding::valid, true}},
                                    Case{"Leaping", {8, 17, 16, 5, 7, 2, 2, 3, 3, Padding::valid, true}},
                                    Case{"Grouped", grouped({4, 9, 8, 8, 12, 3, 3, 1, 1, Padding::same, true}, 4)},
                                    Case{"Depthwise", grouped({4, 9, 8, 16, 16, 3, 3, 2, 2, Padding::same, true}, 16)},
                                    Case{"Dilated", dilated({4, 9, 8, 6, 5, 3, 3, 1, 1, Padding::same, true}, 2)},
                                    Case{"Volume", volume({2, 5, 6, 3, 4, 3, 2, 1, 2, Padding::same, true}, 4, 3)},
                                    Case{"OfAResidualNetwork", {4, 28, 28, 64, 64, 3, 3, 1, 1, Padding::same, true}});

INSTANTIATE_TEST_SUITE_P(Shapes, DeviceConvolution,
                         testing::Combine(kCases, testing::Values(Precision::f32, Precision::tf32, Precision::bf16)),
                         [](const auto& instance) {
                           return std::get<Case>(instance.param).name + test_name(std::get<Precision>(instance.param));
                         });

}  // namespace
}  // namespace holdfast::compute
