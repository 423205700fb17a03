#include "holdfast/train/trainable.h"

#include <fmt/format.h>

#include "nn/losses/metric_direction.h"

namespace holdfast {

void GradientSink::refuse_range(std::size_t begin, std::size_t end) const {
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("compute_gradients() declared floats {} to {} of {} ready, after {} others; declare each float "
                  "once, as a range [begin, end)",
                  begin, end, gradients_.size(), ready_count_));
}

// A Trainable that ignored weights would train with other numbers than its user means, without a word. So the defaults
// of what changes the numbers throw, and an override says that it is prepared.
void Trainable::check_sample_weights(const ArraySpec&) const {
  throw Error(ErrorCode::invalid_argument,
              "the data set has sample weights, which this Trainable does not use; leave them out, or override "
              "Trainable::check_sample_weights()");
}

void Trainable::check_learning_rate(float) const {
  throw Error(ErrorCode::unsupported,
              "a callback sets a learning rate, which this Trainable does not take; override "
              "Trainable::check_learning_rate(), and use Update::learning_rate in apply_update()");
}

void Trainable::lay_out(const std::string& training) {
  if (training.empty()) return;
  throw Error(ErrorCode::incompatible,
              "the state comes from a run that called Trainer::compile(), which an application's own Trainable cannot "
              "take; use the program that made it");
}

std::optional<Best> Trainable::best_of(const std::string& result_name) const {
  return direction_of_name(result_name);
}

// Sums are of all samples of an epoch, over all replicas, so this is the mean of the epoch.
std::vector<double> Trainable::results(std::span<const double> sums, double weight) const {
  std::vector<double> means;
  for (const double sum : sums) means.push_back(sum / weight);
  return means;
}

std::vector<double> Trainable::results_by_divisors(std::span<const double> sums,
                                                   std::span<const double> divisors) const {
  return results(sums, divisors.front());
}

}  // namespace holdfast
