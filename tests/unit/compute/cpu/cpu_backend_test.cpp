// The CPU back end: backward passes are transposes of forward passes, and bits depend on its own threads only.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <omp.h>

#include <functional>
#include <limits>
#include <thread>

#include "compute/backend.h"
#include "compute/cpu/kernels/vector_kernels.h"
#include "compute/window.h"
#include "holdfast/base/error.h"
#include "holdfast/core/random.h"
#include "support/cpu_bf16.h"

namespace holdfast::compute {
namespace {

using Floats = std::vector<float>;

Floats random_floats(std::int64_t count, std::uint64_t number) {
  Random random(number, Purpose::user, 0, 0);
  Floats floats(static_cast<std::size_t>(count));
  for (float& value : floats) value = 2 * random.uniform() - 1;
  return floats;
}

Floats unit_vector(std::size_t size, std::size_t position) {
  Floats vector(size, 0.0F);
  vector[position] = 1;
  return vector;
}

// Compares a linear map from `inputs` to `outputs` floats with a map that should be its transpose. Element (i, j) of
// one must be element (j, i) of the other. Each is a single product by 1 without rounding, so bits are compared.
void expect_transposed(std::size_t inputs, std::size_t outputs,
                       const std::function<void(const float*, float*)>& forward,
                       const std::function<void(const float*, float*)>& backward) {
  std::vector<Floats> columns;
  for (std::size_t i = 0; i < inputs; ++i) {
    columns.emplace_back(outputs, 77.0F);
    forward(unit_vector(inputs, i).data(), columns.back().data());
  }
  std::size_t differences = 0;
  for (std::size_t j = 0; j < outputs; ++j) {
    Floats row(inputs, 77.0F);
    backward(unit_vector(outputs, j).data(), row.data());
    for (std::size_t i = 0; i < inputs; ++i) differences += row[i] != columns[i][j];
  }
  EXPECT_EQ(differences, 0U);
}

struct ConvolutionCase {
  std::string name;
  ConvolutionShape shape;
};

class Convolutions : public testing::TestWithParam<ConvolutionCase> {
 protected:
  Convolutions() : shape_(GetParam().shape), backend_(make_cpu_backend(1)) {
    const auto rows = slide(shape_.height, shape_.kernel_height, shape_.stride_height, shape_.padding);
    const auto columns = slide(shape_.width, shape_.kernel_width, shape_.stride_width, shape_.padding);
    inputs_ = static_cast<std::size_t>(shape_.samples * shape_.height * shape_.width * shape_.channels);
    kernels_ = static_cast<std::size_t>(shape_.kernel_height * shape_.kernel_width * shape_.channels * shape_.filters);
    outputs_ = static_cast<std::size_t>(shape_.samples * rows.count * columns.count * shape_.filters);
    operation_ = backend_->convolution(shape_, {.training = true, .input_gradient = true});
  }

  const ConvolutionShape shape_;
  const std::unique_ptr<Backend> backend_;
  std::unique_ptr<ConvolutionOperation> operation_;
  std::size_t inputs_ = 0, kernels_ = 0, outputs_ = 0;
  const Floats no_bias_ = Floats(64, 0.0F);
};

TEST_P(Convolutions, TheInputsGradientIsTheTransposeOfTheForwardPass) {
  const Floats kernel = random_floats(static_cast<std::int64_t>(kernels_), 1);

  expect_transposed(
      inputs_, outputs_, [&](const float* x, float* y) { operation_->forward(x, kernel.data(), no_bias_.data(), y); },
      [&](const float* dy, float* dx) { operation_->backward_input(kernel.data(), dy, dx); });
}

TEST_P(Convolutions, TheKernelsGradientIsTheTransposeOfTheForwardPass) {
  // With an input of a single 1, the forward pass is linear in the kernel and has no sums.
  const Floats input = unit_vector(inputs_, inputs_ / 2);
  Floats bias_gradient(64);

  expect_transposed(
      kernels_, outputs_,
      [&](const float* kernel, float* y) { operation_->forward(input.data(), kernel, no_bias_.data(), y); },
      [&](const float* dy, float* dk) { operation_->backward_weights(input.data(), dy, dk, bias_gradient.data()); });
}

INSTANTIATE_TEST_SUITE_P(Shapes, Convolutions,
                         testing::Values(ConvolutionCase{"Narrow", {1, 5, 4, 3, 6, 3, 2, 1, 1, Padding::same, true}},
                                         ConvolutionCase{"Strided", {2, 6, 5, 2, 3, 3, 3, 2, 2, Padding::same, true}},
                                         ConvolutionCase{"Unpadded", {1, 7, 6, 1, 6, 5, 5, 1, 1, Padding::valid, true}},
                                         ConvolutionCase{"WideInTheLibrarysOwnLayout",
                                                         {1, 3, 3, 16, 16, 2, 2, 1, 1, Padding::same, true}}),
                         [](const auto& instance) { return instance.param.name; });

TEST(CpuDense, GradientsAreTransposesOfTheForwardPass) {
  const auto backend = make_cpu_backend(1);
  const auto operation = backend->dense({.rows = 3, .inputs = 5, .outputs = 7, .has_bias = false},
                                        {.training = true, .input_gradient = true});
  const Floats kernel = random_floats(35, 1);
  const Floats input = unit_vector(15, 6);

  expect_transposed(
      15, 21, [&](const float* x, float* y) { operation->forward(x, kernel.data(), nullptr, y); },
      [&](const float* dy, float* dx) { operation->backward_input(kernel.data(), dy, dx); });
  expect_transposed(
      35, 21, [&](const float* k, float* y) { operation->forward(input.data(), k, nullptr, y); },
      [&](const float* dy, float* dk) { operation->backward_weights(input.data(), dy, dk, nullptr); });
}

TEST(CpuPooling, TheGradientOfAverageIsItsTranspose) {
  const auto backend = make_cpu_backend(1);
  const auto operation = backend->pooling({.kind = PoolingKind::average,
                                           .samples = 1,
                                           .height = 4,
                                           .width = 6,
                                           .channels = 2,
                                           .pool_height = 2,
                                           .pool_width = 4,
                                           .stride_height = 2,
                                           .stride_width = 4,
                                           .padding = Padding::valid},
                                          {.training = true, .input_gradient = true});

  // Windows have 8 elements, because dividing by a power of two is exact.
  expect_transposed(
      48, 4, [&](const float* x, float* y) { operation->forward(x, y); },
      [&](const float* dy, float* dx) { operation->backward(dy, dx); });
}

TEST(CpuPooling, TheFirstOfEqualMaximaGetsTheGradient) {
  // The library has different kernels for 3 and for 8 channels.
  for (const std::int64_t channels : {1, 3, 8, 16}) {
    const auto backend = make_cpu_backend(1);
    const auto operation = backend->pooling({.samples = 1,
                                             .height = 2,
                                             .width = 2,
                                             .channels = channels,
                                             .pool_height = 2,
                                             .pool_width = 2,
                                             .stride_height = 2,
                                             .stride_width = 2},
                                            {.training = true, .input_gradient = true});
    const auto count = static_cast<std::size_t>(channels);
    const Floats input(4 * count, 0.0F);
    Floats output(count), gradient(4 * count, 77.0F);

    operation->forward(input.data(), output.data());
    operation->backward(Floats(count, 1.0F).data(), gradient.data());

    Floats expected(4 * count, 0.0F);
    std::fill_n(expected.begin(), count, 1.0F);
    EXPECT_EQ(gradient, expected) << channels;
  }
}

TEST(CpuPooling, PaddingIsNeverTheMaximum) {
  const auto backend = make_cpu_backend(1);
  const auto operation = backend->pooling({.samples = 1,
                                           .height = 3,
                                           .width = 3,
                                           .channels = 1,
                                           .pool_height = 3,
                                           .pool_width = 3,
                                           .stride_height = 1,
                                           .stride_width = 1,
                                           .padding = Padding::same},
                                          {});
  const Floats input = {-9, -8, -7, -6, -5, -4, -3, -2, -1};
  Floats output(9);

  operation->forward(input.data(), output.data());

  EXPECT_EQ(output, (Floats{-5, -4, -4, -2, -1, -1, -2, -1, -1}));
}

TEST(CpuActivation, RunsInPlace) {
  for (const Activation activation :
       {Activation::relu, Activation::tanh, Activation::sigmoid, Activation::softmax, Activation::gelu}) {
    const auto backend = make_cpu_backend(1);
    const auto operation =
        backend->activation({.activation = activation, .rows = 5, .channels = 7}, {.training = true});
    const Floats input = random_floats(35, 1);
    Floats output(35), in_place = input;

    operation->forward(input.data(), output.data());
    operation->forward(in_place.data(), in_place.data());

    EXPECT_EQ(in_place, output) << name(activation);
  }
}

TEST(CpuActivation, GivesTheSameBitsOnAnyNumberOfThreads) {
  const std::int64_t rows = 300, channels = 500;
  const Floats input = random_floats(rows * channels, 1), output_gradient = random_floats(rows * channels, 2);
  for (const Activation activation :
       {Activation::relu, Activation::tanh, Activation::sigmoid, Activation::softmax, Activation::gelu}) {
    const auto both_passes = [&](int threads) {
      const auto backend = make_cpu_backend(threads);
      const auto operation = backend->activation({.activation = activation, .rows = rows, .channels = channels},
                                                 {.training = true, .input_gradient = true});
      Floats output(input.size()), result(input.size());
      operation->forward(input.data(), output.data());
      operation->backward(is_differentiated_by_output(activation) ? output.data() : input.data(),
                          output_gradient.data(), result.data());
      result.insert(result.end(), output.begin(), output.end());
      return result;
    };
    const Floats expected = both_passes(1);

    EXPECT_EQ(both_passes(2), expected) << name(activation);
    EXPECT_EQ(both_passes(3), expected) << name(activation);
  }
}

TEST(CpuActivation, ASoftmaxOfMaskedElementsAloneIsZero) {
  const auto backend = make_cpu_backend(1);
  const auto operation =
      backend->activation({.activation = Activation::softmax, .rows = 2, .channels = 3}, {.training = true});
  const float masked = -std::numeric_limits<float>::infinity();
  const Floats input = {masked, masked, masked, masked, 1, 1};
  Floats output(6);

  operation->forward(input.data(), output.data());

  EXPECT_EQ(output, (Floats{0, 0, 0, 0, 0.5F, 0.5F}));
}

TEST(CpuDense, GivesTheSameGradientOfTheBiasOnAnyNumberOfThreads) {
  const std::int64_t rows = 1000, outputs = 300;
  const Floats input = random_floats(rows, 1), output_gradient = random_floats(rows * outputs, 2);
  const auto bias_gradient = [&](int threads) {
    const auto backend = make_cpu_backend(threads);
    const auto operation = backend->dense({.rows = rows, .inputs = 1, .outputs = outputs}, {.training = true});
    Floats kernel_gradient(300), result(300);
    operation->backward_weights(input.data(), output_gradient.data(), kernel_gradient.data(), result.data());
    return result;
  };
  const Floats expected = bias_gradient(1);
  double sum = 0;
  for (std::size_t row = 0; row < 1000; ++row) sum += output_gradient[row * 300 + 299];

  EXPECT_NEAR(expected[299], sum, 1e-4);
  EXPECT_EQ(bias_gradient(2), expected);
  EXPECT_EQ(bias_gradient(3), expected);
}

// Means far from zero, which grow from row to row: the sums of squares must not lose the variance.
TEST(CpuBatchNormalization, KnowsTheVarianceOfNumbersFarFromZeroOnAnyNumberOfThreads) {
  for (const std::int64_t channels : {1, 3, 32, 100}) {
    const std::int64_t rows = 5000;
    Floats input = random_floats(rows * channels, 1);
    const Floats output_gradient = random_floats(rows * channels, 2), ones(static_cast<std::size_t>(channels), 1.0F);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] += 1000 + 0.01F * static_cast<float>(i / ones.size());
    const auto all_results = [&](int threads) {
      const auto backend = make_cpu_backend(threads);
      const auto operation = backend->batch_normalization({.rows = rows, .channels = channels, .epsilon = 1e-3F},
                                                          {.training = true, .input_gradient = true});
      Floats output(input.size()), input_gradient(input.size()), of_gamma(ones.size()), of_beta(ones.size());
      Floats all(2 * ones.size() + 1);
      operation->forward_training(input.data(), ones.data(), ones.data(), output.data());
      operation->backward(input.data(), ones.data(), output_gradient.data(), input_gradient.data(), of_gamma.data(),
                          of_beta.data());
      operation->contribute(all.data());
      for (const Floats& part : {output, input_gradient, of_gamma, of_beta}) {
        all.insert(all.end(), part.begin(), part.end());
      }
      return all;
    };
    const Floats actual = all_results(1);
    double mean = 0, squares = 0;
    for (std::size_t i = 0; i < input.size(); i += ones.size()) mean += input[i] / static_cast<double>(rows);
    for (std::size_t i = 0; i < input.size(); i += ones.size()) squares += (input[i] - mean) * (input[i] - mean);

    EXPECT_NEAR(actual[0], mean * rows, 1e-6 * mean * rows) << channels;
    EXPECT_NEAR(actual[ones.size()], squares, 1e-5 * squares) << channels;
    EXPECT_EQ(all_results(2), actual) << channels;
    EXPECT_EQ(all_results(3), actual) << channels;
  }
}

TEST(CpuBackend, RunsOnUnalignedArrays) {
  const auto backend = make_cpu_backend(1);
  const auto operation = backend->dense({.rows = 4, .inputs = 33, .outputs = 9}, {});
  const Floats input = random_floats(132, 1), kernel = random_floats(297, 2), bias = random_floats(9, 3);
  const auto moved = [](const Floats& from) {
    Floats to(1, 0.0F);
    to.insert(to.end(), from.begin(), from.end());
    return to;
  };
  Floats expected(36), output(37);

  operation->forward(input.data(), kernel.data(), bias.data(), expected.data());
  operation->forward(moved(input).data() + 1, moved(kernel).data() + 1, moved(bias).data() + 1, output.data() + 1);

  output.erase(output.begin());
  EXPECT_EQ(output, expected);
}

// A shape whose sums are split between threads when there are several.
Floats weight_gradient(Backend& backend) {
  const auto operation = backend.convolution({.samples = 8,
                                              .height = 16,
                                              .width = 16,
                                              .channels = 16,
                                              .filters = 16,
                                              .kernel_height = 3,
                                              .kernel_width = 3,
                                              .padding = Padding::same},
                                             {.training = true});
  const Floats input = random_floats(8 * 256 * 16, 1), output_gradient = random_floats(8 * 256 * 16, 2);
  Floats kernel_gradient(9 * 256), bias_gradient(16);
  operation->backward_weights(input.data(), output_gradient.data(), kernel_gradient.data(), bias_gradient.data());
  return kernel_gradient;
}

TEST(CpuBackend, BitsDependOnItsOwnThreadsOnly) {
  const Floats expected = weight_gradient(*make_cpu_backend(2));
  const int before = omp_get_max_threads();

  for (const int application_threads : {1, 3}) {
    omp_set_num_threads(application_threads);
    EXPECT_EQ(weight_gradient(*make_cpu_backend(2)), expected);
    EXPECT_EQ(omp_get_max_threads(), application_threads);
  }
  omp_set_num_threads(before);

  Floats elsewhere;
  std::thread([&] { elsewhere = weight_gradient(*make_cpu_backend(2)); }).join();
  EXPECT_EQ(elsewhere, expected);
}

TEST(CpuBackend, DescribesWhatBitsDependOn) {
  EXPECT_THAT(
      make_cpu_backend(1)->description(),
      testing::MatchesRegex("oneDNN [0-9]+\\.[0-9]+\\.[0-9]+, isa [a-z0-9_]+, kernels [0-9]+, 1 thread per shard"));
  EXPECT_THAT(make_cpu_backend(3)->description(), testing::EndsWith(", 3 threads per shard"));
}

TEST(CpuBackend, ItsDescriptionNamesBf16) {
  if (const std::string why = obstacle_of_bf16(); !why.empty()) GTEST_SKIP() << why;
  EXPECT_EQ(make_cpu_backend(2, Precision::bf16)->description(), make_cpu_backend(2)->description() + ", bf16");
}

void expect_refused(Precision precision, ErrorCode code, const std::string& sentence) {
  for (const auto& ask : {std::function([&] { check_cpu_precision(precision); }),
                          std::function([&] { make_cpu_backend(1, precision); })}) {
    try {
      ask();
      FAIL() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_THAT(error.what(), testing::HasSubstr(sentence));
    }
  }
}

TEST(CpuBackend, RefusesAPrecisionThatNoCpuHas) {
  expect_refused(Precision::tf32, ErrorCode::invalid_argument, "precision tf32 was asked for on CPUs");
}

// This machine may lack the instructions, or have them.
TEST(CpuBackend, RefusesBf16WithoutTheInstructions) {
  const bool has_sets = supported_instruction_sets().back() == InstructionSet::avx512;
  force_instruction_set(InstructionSet::baseline);
  expect_refused(Precision::bf16, ErrorCode::unavailable,
                 obstacle_of_bf16().find("finds no instructions") != std::string::npos
                     ? "oneDNN finds no instructions for it here: isa "
                     : "the loops of instruction set baseline are forced here");
  force_instruction_set(std::nullopt);
  if (!has_sets) expect_refused(Precision::bf16, ErrorCode::unavailable, "whose CPU has avx512_bf16 or amx_bf16");
}

TEST(CpuBackend, RefusesNoThreads) {
  EXPECT_THROW(make_cpu_backend(0), Error);
}

TEST(CpuBackend, AFailureOfTheLibraryNamesOperationAndShape) {
  const auto backend = make_cpu_backend(1);

  try {
    backend->dense({.rows = 3, .inputs = -5, .outputs = 7}, {});
    FAIL() << "a negative extent was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("dense [3, -5] x [-5, 7]"), testing::HasSubstr("forward")));
  }
}

}  // namespace
}  // namespace holdfast::compute
