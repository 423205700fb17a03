#include <vector>

#include "compute/cpu/operations.h"
#include "holdfast/core/random.h"

namespace holdfast::compute {

namespace {

class CpuDropout : public DropoutOperation {
 public:
  explicit CpuDropout(const DropoutShape& shape)
      : shape_(shape), factors_(static_cast<std::size_t>(shape.samples * shape.elements)) {}

  void forward(const DropoutDraws& draws, const float* input, float* output) override {
    draw_factors(draws);
    multiply(input, output);
  }

  void backward(const float* output_gradient, float* input_gradient) override {
    multiply(output_gradient, input_gradient);
  }

 private:
  void draw_factors(const DropoutDraws& draws) {
    const float kept = 1.0F / (1.0F - shape_.rate);
    auto factor = factors_.begin();
    for (std::int64_t sample = 0; sample < shape_.samples; ++sample) {
      Random random(draws.seed, Purpose::dropout, draws.major, draws.first_sample + static_cast<std::uint64_t>(sample));
      for (std::int64_t element = 0; element < shape_.elements; ++element) {
        *factor++ = random.uniform() < shape_.rate ? 0.0F : kept;
      }
    }
  }

  void multiply(const float* from, float* to) const {
    for (std::size_t i = 0; i < factors_.size(); ++i) to[i] = from[i] * factors_[i];
  }

  const DropoutShape shape_;
  std::vector<float> factors_;  // [sample, element]: 0 or 1 / (1 - rate)
};

}  // namespace

std::unique_ptr<DropoutOperation> make_cpu_dropout(const DropoutShape& shape) {
  return std::make_unique<CpuDropout>(shape);
}

}  // namespace holdfast::compute
