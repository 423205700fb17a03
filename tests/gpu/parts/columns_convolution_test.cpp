#include <ostream>
#include <tuple>

#include "compute/arithmetic/convolution.h"
#include "compute/cuda/products/cuda_convolution.h"
#include "compute/cuda/runtime/cuda_memory_space.h"
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

// Convolution by matrix products, which is used if cuDNN has no engine.
class ColumnsConvolutions : public LayerTest, public testing::WithParamInterface<std::tuple<Case, Precision>> {
 protected:
  Precision precision() const override { return std::get<Precision>(GetParam()); }

  struct Arrays {
    Floats output, input_gradient, kernel_gradient, bias_gradient;
  };

  ColumnsConvolutions()
      : shape_(std::get<Case>(GetParam()).shape),
        plan_(shape_),
        input_(values(1, plan_.samples * plan_.sample_inputs())),
        kernel_(values(2, plan_.window_elements() * plan_.filters)),
        bias_(values(3, plan_.filters)),
        output_gradient_(values(4, plan_.samples * plan_.sample_windows() * plan_.filters)) {}

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
    const auto space = CudaMemorySpace::of_device(0);
    const auto operation = make(*space);
    const DeviceArray input(*space, input_), kernel(*space, kernel_), bias(*space, bias_),
        gradient(*space, output_gradient_), result(*space, output_gradient_), input_gradient(*space, input_),
        kernel_gradient(*space, kernel_), bias_gradient(*space, bias_);
    operation->forward(input.data(), kernel.data(), bias.data(), result.data());
    operation->backward_input(kernel.data(), gradient.data(), input_gradient.data());
    operation->backward_weights(input.data(), gradient.data(), kernel_gradient.data(), bias_gradient.data());
    return {result.values(), input_gradient.values(), kernel_gradient.values(), bias_gradient.values()};
  }

 private:
  std::unique_ptr<ConvolutionOperation> make(CudaMemorySpace& space) const {
    const CudaContext::StreamLock lock = space.context().lock_stream();
    return make_columns_convolution(space.context(), precision(), shape_,
                                    {.forward = true, .backward_input = true, .backward_weights = true});
  }

 protected:
  const ConvolutionShape shape_;
  const ConvolutionPlan plan_;
  const Floats input_, kernel_, bias_, output_gradient_;
};

TEST_P(ColumnsConvolutions, GiveTheHostsNumbers) {
  const Arrays expected = on_host();

  const Arrays actual = on_device();

  const std::int64_t windows = plan_.samples * plan_.sample_windows();
  const auto tolerance = [&](std::int64_t sum_terms) { return product_tolerance(precision(), sum_terms); };
  EXPECT_EQ(differences(expected.output, actual.output, tolerance(plan_.window_elements())), "");
  const std::int64_t terms = shape_.kernel_height * shape_.kernel_width * shape_.filters;
  EXPECT_EQ(differences(expected.input_gradient, actual.input_gradient, tolerance(terms)), "");
  EXPECT_EQ(differences(expected.kernel_gradient, actual.kernel_gradient, tolerance(windows)), "");
  EXPECT_EQ(differences(expected.bias_gradient, actual.bias_gradient, sum_tolerance(windows)), "");
}

TEST_P(ColumnsConvolutions, GiveTheSameBitsEachTime) {
  const Arrays first = on_device(), second = on_device();

  EXPECT_EQ(bit_differences(first.output, second.output), "");
  EXPECT_EQ(bit_differences(first.input_gradient, second.input_gradient), "");
  EXPECT_EQ(bit_differences(first.kernel_gradient, second.kernel_gradient), "");
  EXPECT_EQ(bit_differences(first.bias_gradient, second.bias_gradient), "");
}

const auto kCases = testing::Values(Case{"Narrow", {1, 5, 4, 3, 6, 3, 2, 1, 1, Padding::same, true}},
                                    Case{"Strided", {2, 6, 5, 2, 3, 3, 3, 2, 2, Padding::same, true}},
                                    Case{"Pointwise", {8, 7, 6, 16, 33, 1, 1, 1, 1, Padding::valid, true}},
                                    Case{"SecondOfLeNet", {128, 14, 14, 6, 16, 5, 5, 1, 1, Padding::valid, true}},
                                    // a column matrix of 115 million elements: four parts, the last one smaller
                                    Case{"InParts", {64, 56, 56, 64, 16, 3, 3, 1, 1, Padding::same, true}});

INSTANTIATE_TEST_SUITE_P(Shapes, ColumnsConvolutions,
                         testing::Combine(kCases, testing::Values(Precision::f32, Precision::tf32, Precision::bf16)),
                         [](const auto& instance) {
                           return std::get<Case>(instance.param).name + test_name(std::get<Precision>(instance.param));
                         });

}  // namespace
}  // namespace holdfast::compute
