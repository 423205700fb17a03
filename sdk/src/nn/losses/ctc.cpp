// The labels of a target with a blank before, between and after them are the states of a path through the steps.
// Forward sums are of all paths from the first step to a state, backward sums of all paths from it to the last step;
// both are logarithms, so that no number of steps makes them too small. A step's share of a class is the sum over its
// states, and the gradient is softmax - share.

#include "holdfast/nn/ctc.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "compute/arithmetic/crossentropy.h"
#include "core/json_object.h"
#include "core/sample_error.h"
#include "holdfast/base/error.h"
#include "nn/losses/crossentropy_checks.h"

namespace holdfast::losses {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

// log(exp(a) + exp(b))
double log_sum(double a, double b) {
  // The difference of two impossible ones would be a NaN.
  const double larger = std::max(a, b);
  return larger == kImpossible ? kImpossible : larger + std::log1p(std::exp(std::min(a, b) - larger));
}

// One sample: its scores, and its states. The arrays are kept from sample to sample.
class CTCSample {
 public:
  CTCSample(std::size_t steps, std::size_t classes) : steps_(steps), classes_(classes), logs_(steps * classes) {}

  // Labels without the zeros after them.
  void set(std::span<const float> scores, std::span<const float> labels) {
    for (std::size_t step = 0; step < steps_; ++step) set_logs(step, scores.subspan(step * classes_, classes_));
    states_.assign(2 * labels.size() + 1, 0);
    for (std::size_t i = 0; i < labels.size(); ++i) states_[2 * i + 1] = static_cast<std::size_t>(labels[i]);
  }

  // -log of the probability of all paths.
  double loss() {
    forward_.assign(steps_ * states_.size(), kImpossible);
    // A path begins with the first label or with the blank before it.
    for (std::size_t state = 0; state < std::min<std::size_t>(2, states_.size()); ++state) {
      forward(0, state) = log_of(0, state);
    }
    for (std::size_t step = 1; step < steps_; ++step) {
      for (std::size_t state = 0; state < states_.size(); ++state) {
        double sum = forward(step - 1, state);
        if (state > 0) sum = log_sum(sum, forward(step - 1, state - 1));
        if (skips_blank(state)) sum = log_sum(sum, forward(step - 1, state - 2));
        forward(step, state) = sum + log_of(step, state);
      }
    }
    // It ends with the last label or with the blank after it.
    const std::size_t last = states_.size() - 1;
    const double sum =
        last == 0 ? forward(steps_ - 1, 0) : log_sum(forward(steps_ - 1, last), forward(steps_ - 1, last - 1));
    return -sum;
  }

  // After loss(), of which it takes the result.
  void write_gradient(double loss, float scale, std::span<float> gradient) {
    // Backward sums are without the step itself, of which the forward sum has the score.
    next_.assign(states_.size(), kImpossible);
    for (std::size_t state = states_.size(), ends = 0; state-- > 0 && ends < 2; ++ends) next_[state] = 0;
    for (std::size_t step = steps_; step-- > 0;) {
      // How much of the probability goes through each class at this step.
      shares_.assign(classes_, 0);
      for (std::size_t state = 0; state < states_.size(); ++state) {
        shares_[states_[state]] += std::exp(forward(step, state) + next_[state] + loss);
      }
      for (std::size_t c = 0; c < classes_; ++c) {
        gradient[step * classes_ + c] = static_cast<float>(scale * (std::exp(logs_[step * classes_ + c]) - shares_[c]));
      }
      if (step > 0) step_back(step);
    }
  }

 private:
  void set_logs(std::size_t step, std::span<const float> scores) {
    // The largest score changes nothing but keeps the exponentials finite.
    const double largest = *std::ranges::max_element(scores);
    double sum = 0;
    for (const float score : scores) sum += std::exp(score - largest);
    const double log_of_sum = std::log(sum);
    for (std::size_t c = 0; c < classes_; ++c) logs_[step * classes_ + c] = scores[c] - largest - log_of_sum;
  }

  // A path may go on from one label to the next without the blank between them, unless they are equal.
  bool skips_blank(std::size_t state) const {
    return state >= 2 && states_[state] != 0 && states_[state] != states_[state - 2];
  }

  double& forward(std::size_t step, std::size_t state) { return forward_[step * states_.size() + state]; }
  double log_of(std::size_t step, std::size_t state) const { return logs_[step * classes_ + states_[state]]; }

  // Makes the backward sums of the step before.
  void step_back(std::size_t step) {
    after_ = next_;
    for (std::size_t state = 0; state < states_.size(); ++state) {
      double sum = after_[state] + log_of(step, state);
      if (state + 1 < states_.size()) sum = log_sum(sum, after_[state + 1] + log_of(step, state + 1));
      if (state + 2 < states_.size() && skips_blank(state + 2)) {
        sum = log_sum(sum, after_[state + 2] + log_of(step, state + 2));
      }
      next_[state] = sum;
    }
  }

  const std::size_t steps_, classes_;
  std::vector<double> logs_;         // [steps, classes] of log softmax
  std::vector<std::size_t> states_;  // the class of each state
  std::vector<double> forward_;      // [steps, states]
  std::vector<double> next_, after_;
  std::vector<double> shares_;
};

// The labels before the zeros. Throws for labels that no output can spell.
std::span<const float> checked_labels(std::span<const float> target, std::int64_t classes, std::size_t steps,
                                      std::int64_t sample, std::int64_t samples) {
  const auto refuse = [&](const std::string& problem) { throw SampleError(sample, samples, problem); };
  std::size_t count = 0, repeats = 0;
  while (count < target.size() && target[count] != 0) ++count;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (!compute::is_class_label(target[i], classes)) {
      refuse(fmt::format("has the label {} at place {}; labels are the whole numbers 1 to {}, and 0 after the last one",
                         target[i], i, classes - 1));
    }
    if (i > count && target[i] != 0) {
      refuse(fmt::format("has the label {} at place {}, after a 0; zeros are only after the last label", target[i], i));
    }
    if (i > 0 && i < count && target[i] == target[i - 1]) ++repeats;
  }
  if (count + repeats > steps) {
    refuse(fmt::format("has {} labels and {} of them twice in a row, which takes {} steps; the output has {}", count,
                       repeats, count + repeats, steps));
  }
  return target.first(count);
}

void check_at_least(const char* option, std::int64_t value, std::int64_t least) {
  if (value >= least) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("ctc was given .{} = {}; it is at least {}", option, value, least));
}

}  // namespace

CTC::CTC(CTCOptions options) : options_(options) {
  check_at_least("classes", options.classes, 2);
  check_at_least("most_labels", options.most_labels, 1);
}

std::string CTC::configuration() const {
  return JsonObject("ctc").integer("classes", options_.classes).integer("most_labels", options_.most_labels).text();
}

Shape CTC::target_shape(const Shape& output) const {
  if (output.rank() == 2 && output[0] > 0 && output[1] == options_.classes) return Shape({options_.most_labels});
  throw Error(ErrorCode::invalid_argument,
              fmt::format("ctc takes an output of steps and {} classes, and was given one of the shape {}",
                          options_.classes, output.to_string()));
}

// The loss makes its own softmax, so it takes scores as a cross-entropy with from_logits does.
void CTC::check_last_activation(std::optional<Activation> last) const {
  check_crossentropy(name(), {.from_logits = true, .accept_any_activation = options_.accept_any_activation}, last,
                     "softmax");
}

float CTC::evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples, float scale,
                    std::span<float> gradient) const {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(samples, 0));
  const auto classes = static_cast<std::size_t>(options_.classes);
  const auto labels = static_cast<std::size_t>(options_.most_labels);
  const std::size_t width = count == 0 ? 0 : outputs.size() / count;
  if (samples < 0 || outputs.size() != width * count || width % classes != 0 || (count > 0 && width == 0) ||
      targets.size() != labels * count || (!gradient.empty() && gradient.size() != outputs.size())) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("ctc was given {} outputs, {} targets and {} gradients for {} samples; it needs steps of {} "
                    "outputs, and {} targets, for each sample",
                    outputs.size(), targets.size(), gradient.size(), samples, classes, labels));
  }
  CTCSample sample(width / classes, classes);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sample.set(outputs.subspan(i * width, width),
               checked_labels(targets.subspan(i * labels, labels), options_.classes, width / classes,
                              static_cast<std::int64_t>(i), samples));
    const double loss = sample.loss();
    if (!gradient.empty()) sample.write_gradient(loss, scale, gradient.subspan(i * width, width));
    sum += loss;
  }
  return static_cast<float>(sum);
}

}  // namespace holdfast::losses
