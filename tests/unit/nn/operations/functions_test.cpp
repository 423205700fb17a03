#include "holdfast/nn/functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "holdfast/base/error.h"
#include "holdfast/nn/sequential.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/function_layer.h"
#include "unit/nn/support/reference_check.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using reference::Values;

// Compares outputs and gradients of a function of [2 samples, shape] with `expected`, a function of all elements.
// Slopes of the functions here are below `slope`, and each output adds at most `paths` of them.
void expect_function(const Shape& shape, const FunctionLayer::Function& function,
                     const std::function<Values(const Values&)>& expected, double paths = 1, double slope = 8) {
  const Sequential model{Input(shape), FunctionLayer(function)};
  const auto shifted = [&](const Values& x, const std::vector<Values>& parameters) {
    Values y = x;
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += parameters[0][i % parameters[0].size()];
    return expected(y);
  };
  reference::expect_training_matches(model, 2, shifted, {.paths = 2 * paths, .roundings = 16, .largest_path = slope});
}

void expect_of_each(const FunctionLayer::Function& function, double (*expected)(double)) {
  expect_function({3, 5}, function, [&](const Values& x) {
    Values y;
    for (const double value : x) y.push_back(expected(value));
    return y;
  });
}

double erf_gelu(double x) {
  return x / 2 * (1 + std::erf(x / std::numbers::sqrt2));
}

double tanh_gelu(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

TEST(Functions, MatchTheReferenceForOneElement) {
  expect_of_each([](const Value& x) { return -x; }, [](double x) { return -x; });
  expect_of_each([](const Value& x) { return absolute(x); }, [](double x) { return std::abs(x); });
  expect_of_each([](const Value& x) { return square(x); }, [](double x) { return x * x; });
  expect_of_each([](const Value& x) { return square_root(square(x) + 1.0F); },
                 [](double x) { return std::sqrt(x * x + 1); });
  expect_of_each([](const Value& x) { return reciprocal_root(square(x) + 1.0F); },
                 [](double x) { return 1 / std::sqrt(x * x + 1); });
  expect_of_each([](const Value& x) { return exponential(x); }, [](double x) { return std::exp(x); });
  expect_of_each([](const Value& x) { return logarithm(square(x) + 1.0F); },
                 [](double x) { return std::log(x * x + 1); });
  expect_of_each([](const Value& x) { return power(square(x) + 1.0F, 1.5F); },
                 [](double x) { return std::pow(x * x + 1, 1.5); });
  expect_of_each([](const Value& x) { return relu(x); }, [](double x) { return std::max(x, 0.0); });
  expect_of_each([](const Value& x) { return sigmoid(x); }, [](double x) { return 1 / (1 + std::exp(-x)); });
  expect_of_each([](const Value& x) { return tanh(x); }, [](double x) { return std::tanh(x); });
  expect_of_each([](const Value& x) { return gelu(x); }, erf_gelu);
  expect_of_each([](const Value& x) { return gelu_tanh(x); }, tanh_gelu);
  expect_of_each([](const Value& x) { return silu(x); }, [](double x) { return x / (1 + std::exp(-x)); });
  expect_of_each([](const Value& x) { return softplus(x); }, [](double x) { return std::log1p(std::exp(x)); });
}

TEST(Functions, MatchTheReferenceForTwoElements) {
  expect_of_each([](const Value& x) { return x * x + x; }, [](double x) { return x * x + x; });
  expect_of_each([](const Value& x) { return x / (square(x) + 1.0F); }, [](double x) { return x / (x * x + 1); });
  expect_of_each([](const Value& x) { return (2.0F - x) * 3.0F - x / 4.0F; },
                 [](double x) { return (2 - x) * 3 - x / 4; });
  expect_of_each([](const Value& x) { return 1.0F / (square(x) + 1.0F) + (1.0F + 2.0F * x); },
                 [](double x) { return 1 / (x * x + 1) + (1 + 2 * x); });
  expect_of_each([](const Value& x) { return minimum(x, square(x) - 0.3F); },
                 [](double x) { return std::min(x, x * x - 0.3); });
  expect_of_each([](const Value& x) { return maximum(square(x), x + 0.2F); },
                 [](double x) { return std::max(x * x, x + 0.2); });
  expect_of_each([](const Value& x) { return where(less(x, square(x)), exponential(x), -x); },
                 [](double x) { return x < x * x ? std::exp(x) : -x; });
}

TEST(Functions, AValueThatIsUsedSeveralTimesGetsTheSumOfItsGradients) {
  expect_of_each([](const Value& x) { return x * x * x - tanh(x) * x + x; },
                 [](double x) { return x * x * x - std::tanh(x) * x + x; });
}

// [2, rows, columns] -> one number for each sample and row or column.
Values sums(const Values& x, std::size_t rows, std::size_t columns, bool over_rows) {
  Values result(2 * (over_rows ? columns : rows), 0.0);
  for (std::size_t sample = 0; sample < 2; ++sample) {
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        const std::size_t place = over_rows ? sample * columns + column : sample * rows + row;
        result[place] += x[(sample * rows + row) * columns + column];
      }
    }
  }
  return result;
}

TEST(Functions, ReductionsMatchTheReference) {
  expect_function(
      {3, 4}, [](const Value& x) { return sum(x, {0}); }, [](const Values& x) { return sums(x, 3, 4, true); }, 3);
  expect_function(
      {3, 4}, [](const Value& x) { return sum(x, {-1}); }, [](const Values& x) { return sums(x, 3, 4, false); }, 4);
  expect_function(
      {3, 4}, [](const Value& x) { return mean(x); },
      [](const Values& x) {
        Values y = sums(x, 12, 1, true);
        for (double& value : y) value /= 12;
        return y;
      });
  // The axes on both sides of the one that stays: [2, 3, 2] with samples in front.
  expect_function(
      {2, 3, 2},
      [](const Value& x) {
        return sum(x, {0, 2});
      },
      [](const Values& x) {
        Values y(6, 0.0);
        for (std::size_t i = 0; i < x.size(); ++i) y[i / 12 * 3 + i / 2 % 3] += x[i];
        return y;
      },
      4);
  expect_function(
      {3, 4}, [](const Value& x) { return largest(x, {1}); },
      [](const Values& x) {
        Values y;
        for (std::size_t row = 0; row < 6; ++row) {
          y.push_back(*std::max_element(x.begin() + 4 * static_cast<std::ptrdiff_t>(row),
                                        x.begin() + 4 * static_cast<std::ptrdiff_t>(row) + 4));
        }
        return y;
      });
}

TEST(Functions, KeepsReducedAxesWhereAsked) {
  const Value x = input({4, 5, 6});

  EXPECT_EQ(sum(x, {1}).shape(), (Shape{4, 6}));
  EXPECT_EQ(sum(x, {1}, ReducedAxes::keep).shape(), (Shape{4, 1, 6}));
  EXPECT_EQ(mean(x).shape(), Shape());
  EXPECT_EQ(largest(x, {0, -1}, ReducedAxes::keep).shape(), (Shape{1, 5, 1}));
}

TEST(Functions, BroadcastAxesLikeNumPy) {
  // Each row minus its mean; [3, 4] and [3, 1].
  expect_function(
      {3, 4}, [](const Value& x) { return x - mean(x, {1}, ReducedAxes::keep); },
      [](const Values& x) {
        Values y = x;
        const Values rows = sums(x, 3, 4, false);
        for (std::size_t i = 0; i < x.size(); ++i) y[i] -= rows[i / 4] / 4;
        return y;
      },
      5);
  // Sums of columns are [4], which is repeated for each row.
  expect_function(
      {3, 4}, [](const Value& x) { return x * sum(x, {0}); },
      [](const Values& x) {
        Values y = x;
        const Values columns = sums(x, 3, 4, true);
        for (std::size_t i = 0; i < x.size(); ++i) y[i] *= columns[i / 12 * 4 + i % 4];
        return y;
      },
      9, 16);
  expect_function(
      {1, 3},
      [](const Value& x) {
        return square(broadcast(x, {2, 2, 3}));
      },
      [](const Values& x) {
        Values y;
        for (std::size_t i = 0; i < 24; ++i) y.push_back(x[i / 12 * 3 + i % 3] * x[i / 12 * 3 + i % 3]);
        return y;
      },
      4);
}

TEST(Functions, ReorderElements) {
  // Outputs are weighted by their places, so that a gradient at a wrong place shows.
  expect_function(
      {2, 3},
      [](const Value& x) {
        return square(permute(x, {1, 0}));
      },
      [](const Values& x) {
        Values y;
        for (std::size_t i = 0; i < 12; ++i) {
          const double value = x[i / 6 * 6 + i % 2 * 3 + i % 6 / 2];
          y.push_back(value * value);
        }
        return y;
      });
  expect_function(
      {3, 2}, [](const Value& x) { return square(slice(x, 0, 1, 3)); },
      [](const Values& x) {
        Values y;
        for (const std::size_t i : {2, 3, 4, 5, 8, 9, 10, 11}) y.push_back(x[i] * x[i]);
        return y;
      });
  // Parts of equal extents, and of given ones; the gradient of each meets its own elements.
  expect_function(
      {2, 4},
      [](const Value& x) {
        const std::vector<Value> parts = split(x, 2);
        return parts[0] * parts[1];
      },
      [](const Values& x) {
        Values y;
        for (const std::size_t i : {0, 1, 4, 5, 8, 9, 12, 13}) y.push_back(x[i] * x[i + 2]);
        return y;
      });
  expect_function(
      {3, 2},
      [](const Value& x) {
        const std::vector<Value> parts = split(x, {1, 2}, 0);
        return square(parts[0]) * parts[1];
      },
      [](const Values& x) {
        Values y;
        for (std::size_t sample = 0; sample < 2; ++sample) {
          for (std::size_t i = 0; i < 4; ++i) {
            const double first = x[sample * 6 + i % 2];
            y.push_back(first * first * x[sample * 6 + 2 + i]);
          }
        }
        return y;
      });
  expect_function(
      {2, 2}, [](const Value& x) { return square(pad(x, 1, 1, 2)); },
      [](const Values& x) {
        Values y(20, 0.0);
        for (std::size_t i = 0; i < 8; ++i) y[i / 2 * 5 + 1 + i % 2] = x[i] * x[i];
        return y;
      });
  expect_function(
      {2},
      [](const Value& x) {
        return concatenate({square(x), x, -x});
      },
      [](const Values& x) {
        return Values{x[0] * x[0], x[1] * x[1], x[0], x[1], -x[0], -x[1],
                      x[2] * x[2], x[3] * x[3], x[2], x[3], -x[2], -x[3]};
      },
      3);
  expect_function(
      {2, 2}, [](const Value& x) { return square(repeat(x, 0, 3)); },
      [](const Values& x) {
        Values y;
        for (std::size_t i = 0; i < 24; ++i) {
          const double value = x[i / 12 * 4 + i % 12 / 6 * 2 + i % 2];
          y.push_back(value * value);
        }
        return y;
      },
      3);
  expect_function(
      {2, 3},
      [](const Value& x) {
        return square(reshape(x, {3, -1}));
      },
      [](const Values& x) {
        Values y;
        for (const double value : x) y.push_back(value * value);
        return y;
      });
}

TEST(Functions, StopGradientPassesTheValueOnAlone) {
  const Sequential model{Input{2}, FunctionLayer([](const Value& x) { return x * stop_gradient(x); })};
  const std::vector<float> features = {3, 5};
  const std::vector<float> ones = {1, 1};
  std::vector<float> parameters(model.parameters().float_count()), gradients(parameters.size());
  ModelProgram program(model, 1);

  const auto outputs = program.forward_training(features, 1, parameters, {});
  EXPECT_EQ(std::vector<float>(outputs.begin(), outputs.end()), (std::vector<float>{9, 25}));
  program.backward(ones, parameters, gradients, {});

  EXPECT_EQ(gradients[0], 3.0F);
  EXPECT_EQ(gradients[1], 5.0F);
}

TEST(Functions, ANaNReachesTheResultOfMinimumAndMaximum) {
  const Sequential model{Input{2}, FunctionLayer([](const Value& x) { return minimum(x, -x) + maximum(-x, x); })};
  const std::vector<float> features = {std::nanf(""), 1};
  const std::vector<float> parameters(model.parameters().float_count());
  ModelProgram program(model, 1);

  const auto outputs = program.forward_inference(features, 1, parameters, {});

  EXPECT_TRUE(std::isnan(outputs[0]));
  EXPECT_EQ(outputs[1], 0.0F);
}

TEST(Functions, RefuseWhatTheyCannotTakeWithTheShapes) {
  const Value x = input({3, 4});
  const Value y = input({3, 5});
  using testing::HasSubstr;

  EXPECT_THAT(refusal([&] { x + y; }), HasSubstr("shapes [3, 4] and [3, 5] cannot be broadcast"));
  EXPECT_THAT(refusal([&] { sum(x, {2}); }), HasSubstr("sum was given axis 2 of a value of shape [3, 4]"));
  EXPECT_THAT(refusal([&] { sum(x, {1, -1}); }), HasSubstr("axis -1 twice"));
  EXPECT_THAT(refusal([&] { reshape(x, {5, -1}); }), HasSubstr("shape [3, 4] cannot be reshaped to [5, -1]"));
  EXPECT_THAT(refusal([&] { reshape(x, {-1, -1}); }), HasSubstr("cannot be reshaped"));
  EXPECT_THAT(refusal([&] { permute(x, {0, 0}); }), HasSubstr("each axis of a value of shape [3, 4] once"));
  EXPECT_THAT(refusal([&] { slice(x, 1, 2, 5); }), HasSubstr("elements 2 to 5 of axis 1 of a value of shape [3, 4]"));
  EXPECT_THAT(refusal([&] { split(x, 3); }), HasSubstr("3 parts along axis 1 of [3, 4]; 4 is not a multiple of it"));
  EXPECT_THAT(refusal([&] { split(x, {1, 2}); }), HasSubstr("parts of [1, 2] along axis 1 of [3, 4]"));
  EXPECT_THAT(refusal([&] { split(x, {5, -1}); }), HasSubstr("give parts of at least 1 that add up to 4"));
  EXPECT_THAT(refusal([&] { pad(x, 0, -1, 0); }), HasSubstr("cannot be padded with -1 and 0"));
  EXPECT_THAT(refusal([&] {
                concatenate({x, y}, 0);
              }),
              HasSubstr("shapes [3, 4] of f32 and [3, 5] of f32 cannot be concatenated"));
  EXPECT_THAT(refusal([&] {
                concatenate({x, input({3, 4}, {.dtype = DType::i32})}, 0);
              }),
              HasSubstr("[3, 4] of i32 cannot"));
  EXPECT_THAT(refusal([&] { concatenate({}, 0); }), HasSubstr("at least one value"));
  EXPECT_THAT(refusal([&] { repeat(x, 0, 0); }), HasSubstr("a count of at least 1"));
  EXPECT_THAT(refusal([&] { broadcast(x, {4, 4}); }), HasSubstr("cannot be broadcast"));
}

}  // namespace
}  // namespace holdfast
