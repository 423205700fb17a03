// Prediction stands apart from the description of a model, because a model that runs is made of one. Each call makes a
// program of its own: a program is for one thread at a time, and a model is for several. Batches bound the memory that
// a long tensor takes.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/integer_range.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "nn/model/description.h"
#include "nn/model/model_weights.h"
#include "nn/operations/checks.h"
#include "nn/program/model_program.h"

namespace holdfast {
namespace {

void check_input_of_prediction(const ModelArray& wanted, const Tensor& given, std::int64_t samples) {
  if (given.dtype() == wanted.spec.dtype && given.shape().rank() > 0 && given.shape()[0] == samples) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("predict() got {0} {1} for input {2}, which takes {3} and as many samples as the first input, "
                  "{4}; {5}",
                  name(given.dtype()), given.shape().to_string(), quoted_text(wanted.name, 100),
                  name(wanted.spec.dtype), samples,
                  given.dtype() == wanted.spec.dtype
                      ? std::string("pass equally many samples of each input")
                      : fmt::format("make the tensor of {}, or declare the input with {{.dtype = DType::{}}}",
                                    name(wanted.spec.dtype), name(given.dtype()))));
}

// Samples [first, first + count) of an input, as the model takes them.
const std::byte* input_of(const Tensor& tensor, DType computed, std::int64_t first, std::int64_t count,
                          compute::Backend& backend, std::vector<float>& converted) {
  const std::int64_t elements = tensor.shape().without_batch().element_count();
  const std::byte* const from =
      tensor.bytes().data() + static_cast<std::size_t>(first * elements) * size_bytes(tensor.dtype());
  // What the model computes with as it is needs no copy.
  if (tensor.dtype() == computed) return from;
  converted.resize(static_cast<std::size_t>(count * elements));
  // A tensor has no gaps between samples, so all of them are one row. The kernel takes pointers to floats, whatever
  // type it reads.
  backend.array_kernels().convert({.from = tensor.dtype(), .to = computed, .rows = 1, .elements = count * elements},
                                  reinterpret_cast<const float*>(from), converted.data());
  return reinterpret_cast<const std::byte*>(converted.data());
}

std::vector<Tensor> predict_arrays(const Model& model, std::span<const Tensor* const> inputs, std::int64_t batch_size,
                                   std::span<const float> parameters, std::span<const float> buffers) {
  if (inputs.size() != model.inputs().size()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("predict() takes a tensor for each of the {} inputs, not {}",
                                                         model.inputs().size(), inputs.size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_prediction(model.inputs()[i].spec.shape, inputs[i]->shape(), batch_size);
    check_input_of_prediction(model.inputs()[i], *inputs[i], inputs[0]->shape()[0]);
    // Before the first batch, since the conversion to 32 bits would read another row of a table without a word.
    const ModelArray& wanted = model.inputs()[i];
    check_integer_range(*inputs[i], {.name = wanted.name, .shape = wanted.spec.shape, .dtype = wanted.spec.dtype}, i);
  }
  const std::int64_t samples = inputs[0]->shape()[0];
  std::vector<Tensor> results;
  for (const ModelArray& output : model.outputs()) {
    results.emplace_back(output.spec.shape.with_batch(samples), computed_type(output.spec.dtype));
  }
  ModelProgram program(model, compute::default_threads());
  // The arrays of a batch point into these, so they live outside of the loop. They are also large enough for each
  // further batch.
  std::vector<std::vector<float>> converted(inputs.size());
  for (std::int64_t first = 0; first < samples; first += batch_size) {
    const std::int64_t count = std::min(batch_size, samples - first);
    ModelProgram::Inputs arrays;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      arrays.push_back(
          input_of(*inputs[i], computed_type(inputs[i]->dtype()), first, count, program.backend(), converted[i]));
    }
    const ModelProgram::Outputs computed = program.run_inference(arrays, count, parameters, buffers);
    for (std::size_t output = 0; output < computed.size(); ++output) {
      const std::span<std::byte> result = results[output].bytes();
      const std::size_t sample_bytes = result.size() / static_cast<std::size_t>(samples);
      std::memcpy(result.data() + static_cast<std::size_t>(first) * sample_bytes, computed[output],
                  static_cast<std::size_t>(count) * sample_bytes);
    }
  }
  return results;
}

}  // namespace

Tensor Model::predict(const Tensor& x, std::int64_t batch_size) const {
  check_prediction(input_shape(), x.shape(), batch_size);
  static_cast<void>(output_shape());  // throws if there are several
  // The pointer keeps these weights alive, even if another thread replaces the weights of the model meanwhile.
  const auto weights = weights_->values_or_error();
  const Tensor* const input = &x;
  return std::move(
      predict_arrays(*this, std::span(&input, 1), batch_size, weights->parameters, weights->buffers).front());
}

std::vector<Tensor> Model::predict(const std::vector<Tensor>& inputs, std::int64_t batch_size) const {
  const auto weights = weights_->values_or_error();
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  return predict_arrays(*this, pointers, batch_size, weights->parameters, weights->buffers);
}

}  // namespace holdfast
