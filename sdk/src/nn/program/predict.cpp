// Prediction stands apart from the description of a model, because a model that runs is made of one.

#include <algorithm>

#include "compute/backend.h"
#include "holdfast/nn/model.h"
#include "nn/model/model_weights.h"
#include "nn/operations/checks.h"
#include "nn/program/model_program.h"

namespace holdfast {

Tensor Model::predict(const Tensor& x, std::int64_t batch_size) const {
  check_prediction(input_shape(), x.shape(), batch_size);
  const auto weights = weights_->values_or_error();
  const std::int64_t samples = x.shape()[0];
  const auto input_elements = static_cast<std::size_t>(input_shape().element_count());
  const auto output_elements = static_cast<std::size_t>(output_shape().element_count());
  Tensor y(output_shape().with_batch(samples));
  ModelProgram program(*this, compute::default_threads());
  for (std::int64_t first = 0; first < samples; first += batch_size) {
    const std::int64_t count = std::min(batch_size, samples - first);
    const auto features = x.values().subspan(static_cast<std::size_t>(first) * input_elements,
                                             static_cast<std::size_t>(count) * input_elements);
    const auto outputs = program.forward_inference(features, count, weights->parameters, weights->buffers);
    std::copy(outputs.begin(), outputs.end(),
              y.values().begin() + first * static_cast<std::ptrdiff_t>(output_elements));
  }
  return y;
}

}  // namespace holdfast
