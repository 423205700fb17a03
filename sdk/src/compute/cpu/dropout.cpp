#include <vector>

#include "compute/cpu/operations.h"
#include "holdfast/core/random.h"

namespace holdfast::compute {

namespace {

class CpuDropout : public DropoutOperation {
 public:
  CpuDropout(const DropoutShape& shape, const Draws& draws)
      : shape_(shape), draws_(draws), factors_(static_cast<std::size_t>(shape.samples * shape.elements)) {}

  void forward(const float* input, float* output) override {
    draw_factors();
    multiply(input, output);
  }

  void backward(const float* output_gradient, float* input_gradient) override {
    multiply(output_gradient, input_gradient);
  }

 private:
  void draw_factors() {
    const std::uint64_t sequence =
        static_cast<std::uint64_t>(draws_.step) * shape_.sequences_per_step + shape_.sequence;
    const float kept = 1.0F / (1.0F - shape_.rate);
    auto factor = factors_.begin();
    for (std::int64_t sample = 0; sample < shape_.samples; ++sample) {
      Random random(draws_.seed, Purpose::dropout, sequence, static_cast<std::uint64_t>(draws_.first_sample + sample));
      for (std::int64_t element = 0; element < shape_.elements; ++element) {
        *factor++ = random.uniform() < shape_.rate ? 0.0F : kept;
      }
    }
  }

  void multiply(const float* from, float* to) const {
    for (std::size_t i = 0; i < factors_.size(); ++i) to[i] = from[i] * factors_[i];
  }

  const DropoutShape shape_;
  const Draws& draws_;
  std::vector<float> factors_;  // [sample, element]: 0 or 1 / (1 - rate)
};

}  // namespace

std::unique_ptr<DropoutOperation> make_cpu_dropout(const DropoutShape& shape, const Draws& draws) {
  return std::make_unique<CpuDropout>(shape, draws);
}

}  // namespace holdfast::compute
