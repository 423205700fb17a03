// The direction of a step is computed twice from the new slots, once for its norm and once for the step itself. So it
// needs no array of its own.

#include "holdfast/optim/lamb.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "holdfast/base/error.h"
#include "optim/rule_options.h"

namespace holdfast {
namespace {

// The numbers of a step.
struct LambStep {
  float momentum_correction = 1;
  float velocity_correction = 1;
  float epsilon = 0;

  float direction(float momentum, float velocity) const {
    return momentum * momentum_correction / (std::sqrt(velocity * velocity_correction) + epsilon);
  }
};

// Elements whose directions are computed before they are summed: sums have one order, and the rest need not wait for
// them, so the compiler takes several elements at once.
constexpr std::size_t kTogether = 1024;

double corrected(float beta, std::int64_t step) {
  return 1.0 / (1.0 - std::pow(static_cast<double>(beta), static_cast<double>(step)));
}

}  // namespace

Lamb::Lamb(const LambOptions& options) : options_(options) {
  check_moment_options(name(), options);
}

std::string Lamb::configuration() const {
  return moment_configuration(name(), options_);
}

std::unique_ptr<Optimizer> Lamb::with_learning_rate(const LearningRate& rate) const {
  return with_rate<Lamb>(options_, rate);
}

GradientClipping Lamb::clipping() const {
  return clipping_of(options_);
}

ParameterRules Lamb::parameter_rules() const {
  return rules_of(options_);
}

WeightAverage Lamb::weight_average() const {
  return average_of(options_);
}

std::unique_ptr<Optimizer> Lamb::without_weight_decay() const {
  return without_decay<Lamb>(options_);
}

std::vector<std::string> Lamb::slot_names() const {
  return {"momentum", "velocity"};
}

void Lamb::update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
                  std::span<const std::span<float>> slots) const {
  HOLDFAST_ASSERT(step >= 1 && slots.size() == 2 && gradients.size() == parameters.size());
  HOLDFAST_ASSERT(slots[0].size() == parameters.size() && slots[1].size() == parameters.size());
  const double rate = options_.learning_rate.of_update(step);
  const LambStep numbers{.momentum_correction = static_cast<float>(corrected(options_.beta_1, step)),
                         .velocity_correction = static_cast<float>(corrected(options_.beta_2, step)),
                         .epsilon = options_.epsilon};
  const auto kept = static_cast<float>(kept_of(options_.weight_decay, rate));
  const std::span<float> momenta = slots[0];
  const std::span<float> velocities = slots[1];
  const float rest_1 = 1.0F - options_.beta_1;
  const float rest_2 = 1.0F - options_.beta_2;
  // Padding has zeros in all arrays and adds nothing to either sum.
  double weights = 0;
  double directions = 0;
  std::array<float, kTogether> direction{};
  for (std::size_t begin = 0; begin < parameters.size(); begin += kTogether) {
    const std::size_t count = std::min(kTogether, parameters.size() - begin);
    const float* const gradient = gradients.data() + begin;
    float* const parameter = parameters.data() + begin;
    float* const momentum = momenta.data() + begin;
    float* const velocity = velocities.data() + begin;
    for (std::size_t i = 0; i < count; ++i) {
      momentum[i] += (gradient[i] - momentum[i]) * rest_1;
      velocity[i] += (gradient[i] * gradient[i] - velocity[i]) * rest_2;
      // Decay comes first, so the norm below is that of the decayed parameters, as in Keras.
      parameter[i] *= kept;
      direction[i] = numbers.direction(momentum[i], velocity[i]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      weights += static_cast<double>(parameter[i]) * static_cast<double>(parameter[i]);
      directions += static_cast<double>(direction[i]) * static_cast<double>(direction[i]);
    }
  }
  // Where one of the norms is 0, the step is that of the learning rate alone.
  const double ratio = weights > 0 && directions > 0 ? std::sqrt(weights / directions) : 1.0;
  const auto scale = static_cast<float>(rate * ratio);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i] -= scale * numbers.direction(momenta[i], velocities[i]);
  }
}

}  // namespace holdfast
