// Axes are put in an order in which the equation is one product of matrices: those of the input that stay, then those
// that are summed over, and in the kernel those that are summed over, then the new ones. An order that is there already
// costs nothing. einsum() would do for two values, and takes no "..."; here the kernel is a parameter, which keeps
// Keras's axes. docs/decisions/models.md

#include "holdfast/nn/einsum_dense.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/nn/functions.h"
#include "nn/graph/config.h"
#include "nn/layers/kernel_and_bias.h"
#include "nn/operations/checks.h"

namespace holdfast {
namespace {

[[noreturn]] void refuse_equation(const std::string& equation, const std::string& why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("EinsumDense cannot compute {}: {}", quoted_text(equation, 100), why));
}

bool has(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

// Letters in the order of `of`, and all of them in `in` or none.
std::string letters_in(std::string_view of, std::string_view in, bool are_in) {
  std::string found;
  std::copy_if(of.begin(), of.end(), std::back_inserter(found), [&](char letter) { return has(in, letter) == are_in; });
  return found;
}

void check_letters(const std::string& equation, std::string_view letters) {
  for (const char letter : letters) {
    const bool is_letter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    if (!is_letter) refuse_equation(equation, "axes are letters, and \"...\" may only stand first");
    if (std::count(letters.begin(), letters.end(), letter) > 1) {
      refuse_equation(equation, fmt::format("the axis {} stands twice in one term", letter));
    }
  }
}

// The value with its last axes, which `from` names, in the order `to`. Axes before them stay.
Value ordered(const Value& x, std::string_view from, std::string_view to) {
  if (from == to) return x;
  const std::size_t before = x.shape().rank() - from.size();
  AxisList order(before);
  std::iota(order.begin(), order.end(), 0);
  for (const char letter : to) order.push_back(static_cast<std::int64_t>(before + from.find(letter)));
  return permute(x, order);
}

using ExtentsByAxis = std::map<char, std::int64_t>;

std::vector<std::int64_t> extents_of_axes(const ExtentsByAxis& extents, std::string_view letters) {
  std::vector<std::int64_t> result;
  for (const char letter : letters) result.push_back(extents.at(letter));
  return result;
}

// By Shape, which refuses a product that 63 bits cannot count: a file may ask for any extents.
std::int64_t product_of(const std::vector<std::int64_t>& extents) {
  return Shape(extents).element_count();
}

}  // namespace

EinsumDense::EinsumDense(std::string equation, std::vector<std::int64_t> output_shape,
                         const EinsumDenseOptions& options)
    : LayerOf(options.name), equation_(std::move(equation)), output_shape_(std::move(output_shape)), options_(options) {
  const Terms of = terms();
  if (output_shape_.size() != of.output.size()) {
    refuse_equation(equation_, fmt::format("the output has the axes \"{}\" in each sample, and {} extents were given",
                                           of.output, output_shape_.size()));
  }
  for (std::size_t axis = 0; axis < of.output.size(); ++axis) {
    if (output_shape_[axis] == -1 && has(of.input, of.output[axis])) continue;
    check_extent("EinsumDense", "an extent of its output", output_shape_[axis]);
  }
  for (const char letter : options_.bias_axes) {
    if (!has(of.output, letter)) {
      refuse_equation(equation_, fmt::format("the output has no axis {} for the bias", shown_text({&letter, 1})));
    }
  }
}

// Read anew for each call, since it costs little and the equation is the only thing to keep. The constructor reads it
// for its checks.
EinsumDense::Terms EinsumDense::terms() const {
  const std::size_t comma = equation_.find(',');
  const std::size_t arrow = equation_.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow) {
    refuse_equation(equation_, "write it as \"abc,cd->abd\"");
  }
  Terms of{.input = equation_.substr(0, comma),
           .kernel = equation_.substr(comma + 1, arrow - comma - 1),
           .output = equation_.substr(arrow + 2)};
  of.has_ellipsis = of.input.starts_with("...");
  if (of.has_ellipsis != of.output.starts_with("...")) {
    refuse_equation(equation_, "\"...\" must stand first in both the input and the output");
  }
  if (of.has_ellipsis) {
    of.input.erase(0, 3);
    of.output.erase(0, 3);
  }
  for (const std::string& letters : {of.input, of.kernel, of.output}) check_letters(equation_, letters);
  // Values have no axis of samples, so its letter is taken away from input and output.
  if (!of.has_ellipsis) {
    if (of.input.empty() || of.output.empty() || of.input[0] != of.output[0] || has(of.kernel, of.input[0])) {
      refuse_equation(equation_, "the first axis of the input and the output is that of the samples");
    }
    of.input.erase(0, 1);
    of.output.erase(0, 1);
  }
  // The kernel has no axis of its own and none that all three terms have: either would be more than one product.
  for (const char letter : of.kernel) {
    if (has(of.input, letter) == has(of.output, letter)) {
      refuse_equation(equation_, fmt::format("the axis {} of the kernel is neither summed over nor new", letter));
    }
  }
  for (const char letter : of.input + of.output) {
    if (!has(of.kernel, letter) && has(of.input, letter) != has(of.output, letter)) {
      refuse_equation(equation_, fmt::format("the axis {} stands in one term alone", letter));
    }
  }
  return of;
}

std::vector<Value> EinsumDense::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  const Terms of = terms();
  const std::vector<std::int64_t>& extents = input.shape().extents();
  if (of.has_ellipsis ? extents.size() < of.input.size() : extents.size() != of.input.size()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("its equation \"{}\" does not fit an input of shape {}",
                                                         equation_, input.shape().to_string()));
  }
  // Axes that "..." stands for.
  const std::size_t before = extents.size() - of.input.size();
  ExtentsByAxis known;
  for (std::size_t axis = 0; axis < of.input.size(); ++axis) known[of.input[axis]] = extents[before + axis];
  for (std::size_t axis = 0; axis < of.output.size(); ++axis) {
    // An axis that the input has keeps its extent. A new one gets that of the output shape.
    const auto [place, is_new] = known.emplace(of.output[axis], output_shape_[axis]);
    if (is_new || output_shape_[axis] == -1 || place->second == output_shape_[axis]) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("its output has {} elements along {}, and the input has {}; -1 takes those of the input",
                            output_shape_[axis], of.output[axis], place->second));
  }

  // Axes that stay, that are summed over, and that are new: all three in an order that one product needs.
  const std::string kept = letters_in(of.input, of.output, true);
  const std::string summed = letters_in(of.input, of.output, false);
  const std::string added = letters_in(of.output, of.input, false);
  const std::int64_t sums = product_of(extents_of_axes(known, summed));
  const std::int64_t units = product_of(extents_of_axes(known, added));
  // Those of the kernel as a matrix, whatever its axes are.
  const Fans fans{.in = sums, .out = units};
  const Value kernel = limited_kernel(builder, Shape(extents_of_axes(known, of.kernel)), fans, options_);
  const std::vector<std::int64_t> matrix_shape = {sums, units};
  // The parameter keeps the axes of the equation, as in Keras, so weights can be exchanged. Only this view is a matrix.
  const Value matrix = reshape(ordered(kernel, of.kernel, summed + added), matrix_shape);

  std::vector<std::int64_t> places(extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(before));
  for (const std::int64_t extent : extents_of_axes(known, kept)) places.push_back(extent);
  std::vector<std::int64_t> rows = places;
  rows.push_back(sums);
  const Value product = matmul(reshape(ordered(input, of.input, kept + summed), rows), matrix);
  for (const std::int64_t extent : extents_of_axes(known, added)) places.push_back(extent);
  // The product has the axes in its own order; the equation may want another one.
  Value output = ordered(reshape(product, places), kept + added, of.output);

  if (!options_.bias_axes.empty()) {
    // Axes before the first one of the bias are left out: values are broadcast from the last axis.
    const std::size_t first = of.output.find_first_of(options_.bias_axes);
    std::vector<std::int64_t> shape;
    for (const char letter : std::string_view(of.output).substr(first)) {
      shape.push_back(has(options_.bias_axes, letter) ? known.at(letter) : 1);
    }
    output = output + limited_bias(builder, Shape(shape), fans, options_);
  }
  return {options_.activation(output)};
}

void EinsumDense::write_config(ConfigWriter& config) const {
  config.text("equation", equation_);
  config.integers("output_shape", output_shape_);
  config.text("activation", options_.activation.name());
  config.text("bias_axes", options_.bias_axes);
  config.text("kernel_initializer", options_.kernel_initializer.name());
  config.text("bias_initializer", options_.bias_initializer.name());
  write_limits_of_kernel_and_bias(config, options_);
}

std::shared_ptr<const Layer> EinsumDense::from_config(const std::string& name, ConfigReader& config) {
  const EinsumDenseOptions options = {.activation = ActivationFunction::from_name(config.text("activation")),
                                      .bias_axes = config.text("bias_axes"),
                                      .kernel_initializer = Initializer::from_name(config.text("kernel_initializer")),
                                      .bias_initializer = Initializer::from_name(config.text("bias_initializer")),
                                      .kernel_regularizer = read_regularizer(config, "kernel_regularizer"),
                                      .bias_regularizer = read_regularizer(config, "bias_regularizer"),
                                      .kernel_constraint = read_constraint(config, "kernel_constraint"),
                                      .bias_constraint = read_constraint(config, "bias_constraint"),
                                      .name = name};
  const std::string equation = config.text("equation");
  return std::make_shared<const EinsumDense>(equation, config.integers("output_shape"), options);
}

}  // namespace holdfast
