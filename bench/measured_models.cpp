#include "measured_models.h"

#include <cmath>

using namespace holdfast;

namespace {

constexpr std::int64_t kBatches = 8;

// Numbers in [0, 1) that cost almost nothing, since 131 million of them are needed.
class Noise {
 public:
  float next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<float>(state_ >> 40U) * 0x1p-24F;
  }

 private:
  std::uint64_t state_ = 1;
};

}  // namespace

Sequential measured_mlp(std::int64_t divisor) {
  return Sequential{Input{8000 / divisor},
                    Dense{4000 / divisor, {.activation = Activation::tanh}},
                    Dense{2000 / divisor, {.activation = Activation::relu}},
                    Dense{500 / divisor, {.activation = Activation::relu}},
                    Dense{300 / divisor, {.activation = Activation::relu}},
                    Dense{1}};
}

Sequential measured_lenet5() {
  return Sequential{Input{28, 28, 1},
                    Conv2D{6, 5, {.padding = Padding::same, .activation = Activation::tanh}},
                    AveragePooling2D{2},
                    Conv2D{16, 5, {.activation = Activation::tanh}},
                    AveragePooling2D{2},
                    Flatten{},
                    Dense{120, {.activation = Activation::tanh}},
                    Dense{84, {.activation = Activation::tanh}},
                    Dense{10}};
}

Dataset measured_noise(const Shape& features, std::int64_t classes, std::int64_t batch) {
  const std::int64_t samples = kBatches * batch;
  Tensor values(features.with_batch(samples));
  Noise random;
  for (float& value : values.values()) value = random.next();
  const Shape target = classes == 2 ? Shape{samples, 1} : Shape{samples};
  Tensor targets(target);
  for (std::int64_t i = 0; i < samples; ++i) {
    targets.values()[static_cast<std::size_t>(i)] = std::floor(values.sample(i).front() * static_cast<float>(classes));
  }
  return from_tensors(std::move(values), std::move(targets));
}
