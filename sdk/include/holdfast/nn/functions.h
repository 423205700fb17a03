#pragma once

// Functions of values: what models and layers are described with, besides layers.
//
//   const Value distance = sum(square(left - right), {0});
//   const Value gated = silu(matmul(x, gate)) * matmul(x, up);
//
// Axis 0 is the first axis of a sample; a negative axis counts from the last one. Operands of two shapes are broadcast
// as in NumPy: shapes are aligned at their last axes, and an axis of extent 1 is repeated. Samples are never mixed: an
// operand with samples meets the same samples of another one, and one without samples is repeated for each of them.
// All functions throw Error{invalid_argument} for operands that they cannot take.

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/compute/padding.h"
#include "holdfast/nn/value.h"

namespace holdfast {

// Each is computed element by element.
Value operator+(const Value& a, const Value& b);
Value operator-(const Value& a, const Value& b);
Value operator*(const Value& a, const Value& b);
Value operator/(const Value& a, const Value& b);
Value operator-(const Value& a);
Value operator+(const Value& a, float b);
Value operator-(const Value& a, float b);
Value operator*(const Value& a, float b);
Value operator/(const Value& a, float b);
Value operator+(float a, const Value& b);
Value operator-(float a, const Value& b);
Value operator*(float a, const Value& b);
Value operator/(float a, const Value& b);

Value absolute(const Value& x);               // the size of each element
Value sign(const Value& x);                   // -1, 0 or 1; without a gradient
Value square(const Value& x);                 // x * x
Value square_root(const Value& x);            // NaN for negative elements
Value reciprocal_root(const Value& x);        // 1 / sqrt(x)
Value exponential(const Value& x);            // exp(x)
Value logarithm(const Value& x);              // the natural one
Value power(const Value& x, float exponent);  // x to the power of `exponent`
// The smaller and the larger of two; a NaN of either is the result. The first of equal ones gets the gradient.
Value minimum(const Value& a, const Value& b);
Value minimum(const Value& a, float b);
// The larger of two, with the rules of minimum().
Value maximum(const Value& a, const Value& b);
Value maximum(const Value& a, float b);
// 1 where true, else 0; without a gradient.
Value less(const Value& a, const Value& b);
Value less(const Value& a, float b);
Value less(float a, const Value& b);
Value less_equal(const Value& a, const Value& b);
Value equal(const Value& a, const Value& b);  // 1 where they are equal, else 0
// `a` where the condition is not 0, else `b`.
Value where(const Value& condition, const Value& a, const Value& b);
Value where(const Value& condition, const Value& a, float b);
Value where(const Value& condition, float a, const Value& b);

Value relu(const Value& x);     // x where it is positive, else 0
Value sigmoid(const Value& x);  // 1 / (1 + exp(-x))
Value tanh(const Value& x);     // the hyperbolic tangent
// x / 2 * (1 + erf(x / sqrt(2))), and its approximation by tanh (Hendrycks and Gimpel, 2016).
Value gelu(const Value& x);
Value gelu_tanh(const Value& x);
Value silu(const Value& x);      // x * sigmoid(x)
Value softplus(const Value& x);  // log(1 + exp(x))
Value softmax(const Value& x);   // along the last axis

// The product along the last axis of x with a matrix without samples, such as a parameter: [..., inputs] x [inputs,
// outputs] becomes [..., outputs].
// Values that are several matrices each have the products [..., n, k] x [..., k, m] = [..., n, m]: for each sample
// and each index of the axes before the last two, which must be equal, missing or of extent 1 in one of them.
Value matmul(const Value& x, const Value& matrix);

// The product of two values along named axes, as numpy.einsum writes it, without the axis of samples. Axes that the
// result lacks are summed over; each letter stands in two terms or in all three.
//
//   const Value scores = einsum("qhd,khd->hqk", queries, keys);      // of attention, for each head
//
// Throws Error{invalid_argument} for an equation that does not fit, and for one with more than three axes in all terms
// that cannot be joined.
Value einsum(const std::string& equation, const Value& a, const Value& b);

// Windows that slide over spatial axes, as Keras defines them. A value has one to three of these, and then the
// channels: [steps, channels], [height, width, channels] or [depth, height, width, channels]. A list has a number for
// each spatial axis; an empty one stands for 1 on all of them.
struct ConvolutionOptions {
  std::vector<std::int64_t> strides = {};  // of the window
  Padding padding = Padding::valid;
  std::vector<std::int64_t> dilation_rate = {};  // above 1 only where all strides are 1
  std::int64_t groups = 1;                       // divides channels and filters; a filter sees one group of channels
};
// The cross-correlation with a kernel [windows..., channels / groups, filters] without samples, such as a parameter.
Value convolution(const Value& x, const Value& kernel, const ConvolutionOptions& options = {});

// The gradient of a convolution with respect to its input, as a function of its own: strides make the value larger. The
// kernel is [windows..., filters, channels]; transposed_convolution_layers.h has the rule for the extents.
struct TransposedConvolutionOptions {
  std::vector<std::int64_t> strides = {};         // by which the value grows
  Padding padding = Padding::valid;               // not causal
  std::vector<std::int64_t> dilation_rate = {};   // of the elements of the kernel
  std::vector<std::int64_t> output_padding = {};  // default: as large as Keras makes the output
};
// Throws Error{invalid_argument} for shapes and options that do not fit.
Value transposed_convolution(const Value& x, const Value& kernel, const TransposedConvolutionOptions& options = {});

// Windows that max_pooling() and average_pooling() slide over a value.
struct PoolingWindows {
  std::vector<std::int64_t> size;          // of a window
  std::vector<std::int64_t> strides = {};  // default: the size, so that windows do not overlap
  Padding padding = Padding::valid;        // not causal
};
// The largest element of each window, per channel. The first of equal ones in row-major order gets the gradient.
Value max_pooling(const Value& x, const PoolingWindows& windows);
// The mean of the elements of each window, per channel, without padding.
Value average_pooling(const Value& x, const PoolingWindows& windows);

// Over axes of a sample; no axes means all of them. The reduced axes go away, or stay with extent 1.
enum class ReducedAxes { remove, keep };
// 0 is the first axis of a sample; a negative one counts from the last.
using AxisList = std::vector<std::int64_t>;
// Adds the elements along the axes.
Value sum(const Value& x, const AxisList& axes = {}, ReducedAxes reduced = ReducedAxes::remove);
// The mean of the elements along the axes.
Value mean(const Value& x, const AxisList& axes = {}, ReducedAxes reduced = ReducedAxes::remove);
// Equal largest elements share the gradient.
Value largest(const Value& x, const AxisList& axes = {}, ReducedAxes reduced = ReducedAxes::remove);

// The same elements in row-major order; one extent may be -1 and is then computed.
Value reshape(const Value& x, const std::vector<std::int64_t>& extents);
// Axis i of the result is axis order[i] of x.
Value permute(const Value& x, const AxisList& order);
// The elements of an axis from the last one to the first.
Value flip(const Value& x, std::int64_t axis);
// The values one after another along an axis. All other extents must be equal.
Value concatenate(const std::vector<Value>& values, std::int64_t axis = -1);
// Elements [begin, end) along an axis.
Value slice(const Value& x, std::int64_t axis, std::int64_t begin, std::int64_t end);
// One value as several, side by side along an axis: `parts` equal ones, or parts of these extents, which add up to that
// of the axis. The reverse of concatenate(). Throws Error{invalid_argument} for extents that do not fit.
//
//   const std::vector<Value> gates = split(Dense{4 * units}(x), 4);
std::vector<Value> split(const Value& x, std::int64_t parts, std::int64_t axis = -1);
// Likewise, with the extent of each part.
std::vector<Value> split(const Value& x, const std::vector<std::int64_t>& extents, std::int64_t axis = -1);
// Zeros before and after the elements of an axis.
Value pad(const Value& x, std::int64_t axis, std::int64_t before, std::int64_t after);
// Each element along the axis `count` times, next to each other.
Value repeat(const Value& x, std::int64_t axis, std::int64_t count);
// The elements are repeated along axes of extent 1 and new leading axes.
Value broadcast(const Value& x, const Shape& shape);

// Integers as f32, rounded to the nearest above 2^24. Values of f32 stay as they are. Throws Error{invalid_argument}
// for another type to cast to.
Value cast(const Value& x, DType dtype);
// Rows of a table by number, for embeddings: table [rows, width] and ids [...] give [..., width]. The table is a
// weight, the ids are integers. An id that the table does not have ends the step with Error{invalid_argument} that
// names it, its sample and its position; on a device its row is NaN.
Value gather(const Value& table, const Value& ids);

// The weight `name` of the layer that made `output`: "kernel", "embeddings", or what a layer of an application calls
// it. The value has no samples. All uses read one array: it is trained with the sum of their gradients, frozen and
// saved with its layer. So a decoder has the transposed kernel of its encoder:
//
//   const Value code = Dense{32}(x);                                                       // kernel [784, 32]
//   const Value y = sigmoid(matmul(code, permute(weight_of(code, "kernel"), {1, 0})));     // [784]
//
// Throws Error{invalid_argument} for a value that no layer has made, and for a name that the layer does not have.
Value weight_of(const Value& output, const std::string& name);

// Passes the value on and stops its gradient.
Value stop_gradient(const Value& x);

}  // namespace holdfast
