#pragma once

// Convolutions with one to three spatial axes, and their comparison with the reference.

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <type_traits>

#include "holdfast/nn/layer.h"
#include "holdfast/nn/sequential.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/function_layer.h"
#include "unit/nn/support/reference_check.h"
#include "unit/nn/support/window_reference.h"

namespace holdfast {

struct WindowCase {
  std::string name;
  std::vector<std::int64_t> extents, kernel, strides, dilation;
  Padding padding = Padding::valid;
  std::int64_t channels = 1, filters = 1, groups = 1;
};

inline void PrintTo(const WindowCase& tested, std::ostream* out) {
  *out << tested.name;
}

inline Shape sample_shape(const WindowCase& c) {
  std::vector<std::int64_t> extents = c.extents;
  extents.push_back(c.channels);
  return Shape(extents);
}

inline reference::Windows windows_of(const WindowCase& c) {
  return {.extents = reference::axes_of(c.extents),
          .sizes = reference::axes_of(c.kernel),
          .strides = reference::axes_of(c.strides),
          .dilation = reference::axes_of(c.dilation),
          .padding = std::string(name(c.padding))};
}

// The extent of a layer from a list with a number for each axis.
template <class Extent>
Extent extent_of(const std::vector<std::int64_t>& list) {
  if constexpr (std::is_same_v<Extent, std::int64_t>) {
    return list.at(0);
  } else if constexpr (std::is_same_v<Extent, Extent2D>) {
    return {list.at(0), list.at(1)};
  } else {
    return {list.at(0), list.at(1), list.at(2)};
  }
}

// Outputs and gradients of the layer, also that of its input: the layer before it adds a parameter to each element.
// `reference` gets the layer's input and parameters. Each output sums `terms` products, and each gradient at most the
// terms of all outputs.
template <class SelfLayer>
void expect_matches(const Shape& sample, const SelfLayer& layer, const reference::Model& reference,
                    std::int64_t terms) {
  constexpr std::int64_t kSamples = 2;
  const Sequential model{Input(sample), FunctionLayer([](const Value& x) { return x; }), layer};
  const auto after_shift = [&](const reference::Values& x, const std::vector<reference::Values>& parameters) {
    reference::Values shifted = x;
    for (std::size_t i = 0; i < x.size(); ++i) shifted[i] += parameters[0][i % parameters[0].size()];
    return reference(shifted, {parameters.begin() + 1, parameters.end()});
  };
  const auto outputs = static_cast<double>(kSamples * model.output_shape().element_count());
  const double roundings = static_cast<double>(terms) + outputs + 4;
  // Signs are random, so that sums grow with the root of their terms.
  reference::expect_training_matches(
      model, kSamples, after_shift,
      {.paths = std::sqrt(static_cast<double>(terms) * outputs), .roundings = roundings, .largest_path = 2});
}

template <class SelfLayer, class Extent>
void expect_convolution_matches(const WindowCase& c) {
  const SelfLayer layer(c.filters, extent_of<Extent>(c.kernel),
                        {.strides = extent_of<Extent>(c.strides),
                         .padding = c.padding,
                         .dilation_rate = extent_of<Extent>(c.dilation),
                         .groups = c.groups});
  const auto reference = [&](const reference::Values& x, const std::vector<reference::Values>& p) {
    return reference::slide_kernel(x, windows_of(c), {p[0], p[1], c.channels, c.filters, c.groups});
  };
  expect_matches(sample_shape(c), layer, reference, Shape(c.kernel).element_count() * c.channels / c.groups);
}

// What a layer makes of one sample x[i] = 7 i mod 11 - 5, with kernels w[i] = 5 i mod 7 - 3 and biases b[i] = i + 1.
// All sums are small integers, so that another implementation gives the same numbers exactly, and so does inference.
template <class SelfLayer>
std::vector<float> outputs_of_pattern(const Shape& sample, const SelfLayer& layer) {
  const auto pattern = [](std::span<float> values, std::int64_t factor, std::int64_t modulus, std::int64_t shift) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(static_cast<std::int64_t>(i) * factor % modulus - shift);
    }
  };
  const Sequential model{Input(sample), layer};
  const ArenaLayout& layout = model.parameters();
  std::vector<float> features(static_cast<std::size_t>(sample.element_count())), weights(layout.float_count());
  pattern(features, 7, 11, 5);
  for (std::size_t entry = 0; entry < layout.entries().size(); ++entry) {
    const bool is_bias = layout.entries()[entry].name.ends_with("bias");
    const std::span<float> values = layout.view(std::span<float>(weights), entry);
    is_bias ? pattern(values, 1, 1000, -1) : pattern(values, 5, 7, 3);
  }
  ModelProgram program(model, 1);
  const std::span<const float> trained = program.forward_training(features, 1, weights, {});
  const std::vector<float> outputs(trained.begin(), trained.end());
  const std::span<const float> inferred = program.forward_inference(features, 1, weights, {});
  EXPECT_EQ(std::vector<float>(inferred.begin(), inferred.end()), outputs);
  return outputs;
}

}  // namespace holdfast
