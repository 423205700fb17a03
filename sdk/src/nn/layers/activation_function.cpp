// Functions of values need no kernels of their own. An exponential that is not used must stay finite nevertheless: its
// gradient is multiplied by 0, and 0 times infinity is NaN. docs/decisions/layers.md

#include "holdfast/nn/activation_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/nn/functions.h"
#include "nn/operations/elements.h"
#include "nn/operations/operations.h"

namespace holdfast {

namespace {

using compute::ElementFunction;
using Numbers = std::span<const float>;

// With a constant operand, these need no array for the limit.
Value at_most(const Value& x, float limit) {
  return element_function(ElementFunction::minimum, {x, limit});
}

Value at_least(const Value& x, float limit) {
  return element_function(ElementFunction::maximum, {x, limit});
}

Value is_above(const Value& x, float limit) {
  return element_function(ElementFunction::less, {limit, x});
}

// The numbers are slope, maximum and threshold.
Value general_relu(const Value& x, Numbers numbers) {
  // Below the threshold the result is slope * (x - threshold), as in Keras. The maximum holds above it alone.
  const float slope = numbers[0], maximum = numbers[1], threshold = numbers[2];
  Value result =
      threshold == 0 ? relu(x) : element_function(ElementFunction::select, {is_above(x, threshold), x, 0.0F});
  if (maximum != ReLUOptions::kUnlimited) result = at_most(result, maximum);
  return slope == 0 ? result : result - relu(threshold - x) * slope;
}

// The slope may be negative or above 1, where the larger of x and slope * x would be the wrong one.
Value leaky_relu(const Value& x, Numbers numbers) {
  return where(is_above(x, 0), x, x * numbers[0]);
}

// Clevert et al., "Fast and Accurate Deep Network Learning by Exponential Linear Units", 2016. One of the two terms is
// always 0.
Value elu(const Value& x, Numbers numbers) {
  return relu(x) + (exponential(at_most(x, 0)) - 1.0F) * numbers[0];
}

// Klambauer et al., "Self-Normalizing Neural Networks", 2017. Both constants are rounded from those of the paper.
Value selu(const Value& x, Numbers) {
  constexpr std::array kAlpha = {1.67326324235437728F};
  return elu(x, kAlpha) * 1.05070098735548049F;
}

// Barron, "Continuously Differentiable Exponential Linear Units", 2017.
Value celu(const Value& x, Numbers numbers) {
  return relu(x) + (exponential(at_most(x, 0) / numbers[0]) - 1.0F) * numbers[0];
}

// This is relu6(x + 3) / 6, as in Keras.
Value hard_sigmoid(const Value& x, Numbers) {
  return at_most(at_least(x / 6.0F + 0.5F, 0), 1);
}

// The part of x from -threshold to threshold is taken away.
Value soft_shrink(const Value& x, Numbers numbers) {
  return x - at_most(at_least(x, -numbers[0]), numbers[0]);
}

Value hard_shrink(const Value& x, Numbers numbers) {
  return element_function(ElementFunction::select, {is_above(absolute(x), numbers[0]), x, 0.0F});
}

// The numbers are the limit and the value that stands for all elements up to it.
Value threshold(const Value& x, Numbers numbers) {
  return element_function(ElementFunction::select, {is_above(x, numbers[0]), x, numbers[1]});
}

// The difference of the root and |x| would lose its digits far from 0, so it is written as a quotient.
Value squareplus(const Value& x, Numbers numbers) {
  const float b = numbers[0];
  // At 0, absolute() would have no slope, and half of the slope of the result would be missing.
  const Value size = where(is_above(x, 0), x, -x);
  return relu(x) + (0.5F * b) / (square_root(square(x) + b) + size);
}

// Between -1 and 1 the second term is 0. From 1 on, the first one is 1.
Value sparse_plus(const Value& x, Numbers) {
  return square(at_most(at_least(x, -1), 1) + 1.0F) / 4.0F + relu(x - 1.0F);
}

Value sparse_sigmoid(const Value& x, Numbers) {
  return at_most(at_least(x / 2.0F + 0.5F, 0), 1);
}

void require_an_axis(std::string_view function, const Value& x) {
  if (x.shape().rank() > 0) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} needs a value with an axis at least", function));
}

// Martins and Astudillo, "From Softmax to Sparsemax", 2016, algorithm 1, without its sort. What an element needs from
// it is how many elements are as large as itself at least, and their sum.
Value sparsemax(const Value& x, Numbers) {
  require_an_axis("sparsemax", x);
  // The result does not depend on the largest element, nor the gradient. Sums of small numbers are more precise.
  const Value shifted = x - stop_gradient(largest(x, {-1}, ReducedAxes::keep));
  std::vector<std::int64_t> column = shifted.shape().extents();
  column.push_back(1);
  std::vector<std::int64_t> row = shifted.shape().extents();
  row.insert(row.end() - 1, 1);
  const Value constant = stop_gradient(shifted);
  const Value others = reshape(constant, row);
  const Value is_as_large = less_equal(reshape(constant, column), others);
  const Value count = sum(is_as_large, {-1});
  const Value total = sum(is_as_large * others, {-1});
  const Value is_kept = less(total, count * constant + 1.0F);
  const Value limit = (sum(is_kept * shifted, {-1}, ReducedAxes::keep) - 1.0F) / sum(is_kept, {-1}, ReducedAxes::keep);
  return relu(shifted - limit);
}

// Dauphin et al., "Language Modeling with Gated Convolutional Networks", 2017.
Value glu(const Value& x, Numbers) {
  require_an_axis("glu", x);
  const std::int64_t elements = x.shape().extents().back();
  if (elements % 2 != 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("glu needs an even number of elements along the last axis, not {}", elements));
  }
  return slice(x, -1, 0, elements / 2) * sigmoid(slice(x, -1, elements / 2, elements));
}

Value log_softmax(const Value& x, Numbers) {
  require_an_axis("log_softmax", x);
  // The largest one becomes 0, so that no exponential is infinite. The result does not depend on it, nor the gradient.
  const Value shifted = x - stop_gradient(largest(x, {-1}, ReducedAxes::keep));
  return shifted - logarithm(sum(exponential(shifted), {-1}, ReducedAxes::keep));
}

// A function with its arguments. A text without arguments takes the defaults, which are those of Keras.
struct FunctionEntry {
  std::string_view name;
  std::size_t numbers;
  std::array<float, 3> defaults;
  Value (*apply)(const Value& x, Numbers numbers);
};

constexpr float kNone = ReLUOptions::kUnlimited;

// The names stand in files, so none of them may change.
const std::array kFunctions = {
    FunctionEntry{"relu", 3, {0, kNone, 0}, general_relu},
    FunctionEntry{"relu6", 0, {}, [](const Value& x, Numbers) { return at_most(relu(x), 6); }},
    FunctionEntry{"leaky_relu", 1, {0.2F}, leaky_relu},
    FunctionEntry{"elu", 1, {1}, elu},
    FunctionEntry{"selu", 0, {}, selu},
    FunctionEntry{"celu", 1, {1}, celu},
    // Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
    FunctionEntry{"gelu_tanh", 0, {}, [](const Value& x, Numbers) { return gelu_tanh(x); }},
    // Elfwing et al., "Sigmoid-weighted linear units for neural network function approximation in reinforcement
    // learning", 2018.
    FunctionEntry{"silu", 0, {}, [](const Value& x, Numbers) { return silu(x); }},
    FunctionEntry{"softplus", 0, {}, [](const Value& x, Numbers) { return softplus(x); }},
    FunctionEntry{"softsign", 0, {}, [](const Value& x, Numbers) { return x / (absolute(x) + 1.0F); }},
    FunctionEntry{"hard_sigmoid", 0, {}, hard_sigmoid},
    FunctionEntry{"hard_silu", 0, {}, [](const Value& x, Numbers) { return x * hard_sigmoid(x, {}); }},
    FunctionEntry{"hard_tanh", 0, {}, [](const Value& x, Numbers) { return at_most(at_least(x, -1), 1); }},
    FunctionEntry{"tanh_shrink", 0, {}, [](const Value& x, Numbers) { return x - tanh(x); }},
    FunctionEntry{"soft_shrink", 1, {0.5F}, soft_shrink},
    FunctionEntry{"hard_shrink", 1, {0.5F}, hard_shrink},
    FunctionEntry{"exponential", 0, {}, [](const Value& x, Numbers) { return exponential(x); }},
    // This form never takes the logarithm of a sigmoid, which may round to 0.
    FunctionEntry{"log_sigmoid", 0, {}, [](const Value& x, Numbers) { return -softplus(-x); }},
    // Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2019.
    FunctionEntry{"mish", 0, {}, [](const Value& x, Numbers) { return x * tanh(softplus(x)); }},
    FunctionEntry{"log_softmax", 0, {}, log_softmax},
    FunctionEntry{"threshold", 2, {}, threshold},
    // Barron, "Squareplus: A Softplus-Like Algebraic Rectifier", 2021.
    FunctionEntry{"squareplus", 1, {4}, squareplus},
    FunctionEntry{"sparse_plus", 0, {}, sparse_plus},
    // Blondel et al., "Learning with Fenchel-Young Losses", 2019.
    FunctionEntry{"sparse_sigmoid", 0, {}, sparse_sigmoid},
    FunctionEntry{"sparsemax", 0, {}, sparsemax},
    FunctionEntry{"glu", 0, {}, glu},
};

// These have kernels of their own. "relu" stands in both lists: it is this one where it has no arguments.
constexpr std::array kBasicNames = {"linear", "relu", "tanh", "sigmoid", "softmax", "gelu"};

const FunctionEntry* find_function(std::string_view name) {
  // The list is short enough to be searched from its start.
  const auto found = std::find_if(kFunctions.begin(), kFunctions.end(),
                                  [name](const FunctionEntry& entry) { return entry.name == name; });
  return found == kFunctions.end() ? nullptr : &*found;
}

[[noreturn]] void refuse_function(std::string_view text) {
  std::string names = fmt::format("{}", fmt::join(kBasicNames, ", "));
  for (const FunctionEntry& entry : kFunctions) {
    if (entry.name != "relu") names += fmt::format(", {}", entry.name);
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} is not an activation; choose one of {}", quoted_text(text, 100), names));
}

void check_numbers(std::string_view function, Numbers numbers, bool may_be_negative) {
  for (const float number : numbers) {
    // A NaN or an infinity would reach each output of the layer.
    if (std::isfinite(number) && (may_be_negative || number >= 0)) continue;
    throw Error(ErrorCode::invalid_argument, fmt::format("the activation {} needs a finite number{}, not {}", function,
                                                         may_be_negative ? "" : " of at least 0", number));
  }
}

}  // namespace

ActivationFunction::ActivationFunction(Activation activation) : basic_(activation) {}

ActivationFunction ActivationFunction::relu(const ReLUOptions& options) {
  // The comparison refuses a NaN too, and accepts infinity, which stands for none.
  if (!(options.max_value >= 0)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the activation relu needs a max_value of at least 0, not {}", options.max_value));
  }
  check_numbers("relu", std::array{options.negative_slope, options.threshold}, false);
  const std::vector<float> numbers = {options.negative_slope, options.max_value, options.threshold};
  // The plain function has a kernel of its own, and one name in files.
  if (numbers == std::vector<float>{0, kNone, 0}) return Activation::relu;
  return {"relu", numbers};
}

ActivationFunction ActivationFunction::relu6() {
  return {"relu6", {}};
}

ActivationFunction ActivationFunction::leaky_relu(float negative_slope) {
  check_numbers("leaky_relu", std::array{negative_slope}, true);
  return {"leaky_relu", {negative_slope}};
}

ActivationFunction ActivationFunction::elu(float alpha) {
  check_numbers("elu", std::array{alpha}, true);
  return {"elu", {alpha}};
}

ActivationFunction ActivationFunction::selu() {
  return {"selu", {}};
}

ActivationFunction ActivationFunction::celu(float alpha) {
  check_numbers("celu", std::array{alpha}, true);
  // The formula divides by alpha.
  if (alpha == 0) throw Error(ErrorCode::invalid_argument, "the activation celu needs an alpha other than 0");
  return {"celu", {alpha}};
}

ActivationFunction ActivationFunction::gelu() {
  return Activation::gelu;
}

ActivationFunction ActivationFunction::gelu_tanh() {
  return {"gelu_tanh", {}};
}

ActivationFunction ActivationFunction::silu() {
  return {"silu", {}};
}

ActivationFunction ActivationFunction::softplus() {
  return {"softplus", {}};
}

ActivationFunction ActivationFunction::softsign() {
  return {"softsign", {}};
}

ActivationFunction ActivationFunction::hard_sigmoid() {
  return {"hard_sigmoid", {}};
}

ActivationFunction ActivationFunction::hard_silu() {
  return {"hard_silu", {}};
}

ActivationFunction ActivationFunction::hard_tanh() {
  return {"hard_tanh", {}};
}

ActivationFunction ActivationFunction::tanh_shrink() {
  return {"tanh_shrink", {}};
}

ActivationFunction ActivationFunction::soft_shrink(float threshold) {
  // With a negative threshold, the two limits would change places.
  check_numbers("soft_shrink", std::array{threshold}, false);
  return {"soft_shrink", {threshold}};
}

ActivationFunction ActivationFunction::hard_shrink(float threshold) {
  // With a negative threshold, the function would be the identity.
  check_numbers("hard_shrink", std::array{threshold}, false);
  return {"hard_shrink", {threshold}};
}

ActivationFunction ActivationFunction::threshold(float limit, float value) {
  check_numbers("threshold", std::array{limit, value}, true);
  return {"threshold", {limit, value}};
}

ActivationFunction ActivationFunction::squareplus(float b) {
  check_numbers("squareplus", std::array{b}, false);
  // At 0 the root would have no slope.
  if (b == 0) throw Error(ErrorCode::invalid_argument, "the activation squareplus needs a b above 0");
  return {"squareplus", {b}};
}

ActivationFunction ActivationFunction::sparse_plus() {
  return {"sparse_plus", {}};
}

ActivationFunction ActivationFunction::sparse_sigmoid() {
  return {"sparse_sigmoid", {}};
}

ActivationFunction ActivationFunction::sparsemax() {
  return {"sparsemax", {}};
}

ActivationFunction ActivationFunction::glu() {
  return {"glu", {}};
}

ActivationFunction ActivationFunction::exponential() {
  return {"exponential", {}};
}

ActivationFunction ActivationFunction::log_sigmoid() {
  return {"log_sigmoid", {}};
}

ActivationFunction ActivationFunction::mish() {
  return {"mish", {}};
}

ActivationFunction ActivationFunction::log_softmax() {
  return {"log_softmax", {}};
}

Value ActivationFunction::operator()(const Value& x) const {
  if (basic_) return activation(x, *basic_);
  const FunctionEntry* const entry = find_function(function_);
  // Only names of the list reach the constructor.
  HOLDFAST_ASSERT(entry != nullptr);
  return entry->apply(x, numbers_);
}

std::string ActivationFunction::name() const {
  if (basic_) return std::string(holdfast::name(*basic_));
  std::string arguments;
  for (const float number : numbers_) {
    // JSON has no infinity, so the maximum that is not there has a word.
    arguments += (arguments.empty() ? "" : ",") + (number == kNone ? "none" : json_number(number));
  }
  return arguments.empty() ? function_ : fmt::format("{}({})", function_, arguments);
}

ActivationFunction ActivationFunction::from_name(std::string_view text) {
  const auto basic = std::find(kBasicNames.begin(), kBasicNames.end(), text);
  if (basic != kBasicNames.end()) return activation_from_name(text);
  // Keras has two names for these functions. Files always get the first one.
  if (text == "swish") return silu();
  if (text == "hard_swish") return hard_silu();
  const std::size_t opening = text.find('(');
  const FunctionEntry* const entry = find_function(text.substr(0, opening));
  if (entry == nullptr) refuse_function(text);
  // The text may come from a file. Each step below thus refuses what is not a call of a function with numbers.
  std::vector<float> numbers(entry->defaults.begin(), entry->defaults.begin() + static_cast<int>(entry->numbers));
  if (opening != std::string_view::npos) {
    numbers.clear();
    std::string_view rest = text.substr(opening + 1);
    while (!rest.empty()) {
      const std::size_t end = rest.find_first_of(",)");
      const std::string_view number = rest.substr(0, end);
      numbers.push_back(number == "none" ? kNone : float_from_text(number));
      const bool is_last = end == std::string_view::npos || rest[end] == ')';
      if (is_last && (end == std::string_view::npos || end + 1 != rest.size())) refuse_function(text);
      rest.remove_prefix(std::min(rest.size(), end + 1));
      if (!is_last && rest.empty()) refuse_function(text);
    }
    if (numbers.size() != entry->numbers || numbers.empty()) refuse_function(text);
  }
  // The functions above check the numbers.
  if (entry->name == "relu") {
    return relu({.max_value = numbers[1], .negative_slope = numbers[0], .threshold = numbers[2]});
  }
  if (entry->name == "leaky_relu") return leaky_relu(numbers[0]);
  if (entry->name == "elu") return elu(numbers[0]);
  if (entry->name == "celu") return celu(numbers[0]);
  if (entry->name == "soft_shrink") return soft_shrink(numbers[0]);
  if (entry->name == "hard_shrink") return hard_shrink(numbers[0]);
  if (entry->name == "squareplus") return squareplus(numbers[0]);
  if (entry->name == "threshold") {
    // Keras has no defaults for it.
    if (opening == std::string_view::npos) refuse_function(text);
    return threshold(numbers[0], numbers[1]);
  }
  return {entry->name, std::move(numbers)};
}

}  // namespace holdfast
