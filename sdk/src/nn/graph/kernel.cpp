#include "nn/graph/kernel.h"

namespace holdfast {

// A single number counts as one channel. So rows times channels is the number of elements for every shape.
std::int64_t last_extent(const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
}

std::int64_t leading_elements(const Shape& shape) {
  return shape.element_count() / last_extent(shape);
}

std::int64_t KernelMaker::rows(std::size_t input) const {
  // A value without samples, such as a weight, has the same rows for every number of samples.
  return (inputs[input]->has_samples ? samples : 1) * leading_elements(input_shape(input));
}

std::int64_t KernelMaker::channels(std::size_t input) const {
  return last_extent(input_shape(input));
}

}  // namespace holdfast
