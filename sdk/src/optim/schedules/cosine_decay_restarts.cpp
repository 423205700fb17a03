// The number of the period follows from a quotient of logarithms, which rounding may put on the wrong side of a
// restart. So the beginnings of the periods decide, and the quotient only says where to look.

#include "holdfast/optim/cosine_decay_restarts.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/json_object.h"
#include "optim/check_option.h"

namespace holdfast {
namespace {

// In units of the first period: the sum of the lengths of all periods before this one.
double begin_of_period(double period, double growth) {
  return growth == 1 ? period : (std::pow(growth, period) - 1.0) / (growth - 1.0);
}

double period_at(double time, double growth) {
  double period = std::floor(growth == 1 ? time : std::log1p(time * (growth - 1.0)) / std::log(growth));
  while (begin_of_period(period + 1, growth) <= time) ++period;
  while (period > 0 && begin_of_period(period, growth) > time) --period;
  return period;
}

}  // namespace

CosineDecayRestarts::CosineDecayRestarts(float initial_learning_rate, std::int64_t first_decay_steps,
                                         CosineDecayRestartsOptions options)
    : initial_learning_rate_(initial_learning_rate), first_decay_steps_(first_decay_steps), options_(options) {
  const char* const owner = "cosine_decay_restarts";
  check_option(owner, "initial_learning_rate", initial_learning_rate, initial_learning_rate >= 0, "not negative");
  check_count(owner, "first_decay_steps", first_decay_steps, 1);
  // Periods that become shorter would all end before some step.
  check_option(owner, "t_mul", options.t_mul, options.t_mul >= 1, "at least 1");
  check_option(owner, "m_mul", options.m_mul, options.m_mul >= 0, "not negative");
  check_option(owner, "alpha", options.alpha, options.alpha >= 0 && options.alpha <= 1, "in [0, 1]");
}

std::string CosineDecayRestarts::configuration() const {
  // A resume compares this text, so members and their order are data.
  return JsonObject("cosine_decay_restarts")
      .number("initial_learning_rate", initial_learning_rate_)
      .integer("first_decay_steps", first_decay_steps_)
      .number("t_mul", options_.t_mul)
      .number("m_mul", options_.m_mul)
      .number("alpha", options_.alpha)
      .text();
}

// Computed in double and rounded once, so that every rank and device gets the same float.
float CosineDecayRestarts::rate_after(std::int64_t updates) const {
  const double growth = options_.t_mul;
  const double alpha = options_.alpha;
  const double time = static_cast<double>(updates) / static_cast<double>(first_decay_steps_);
  const double period = period_at(time, growth);
  const double part = std::min((time - begin_of_period(period, growth)) / std::pow(growth, period), 1.0);
  const double height = std::pow(static_cast<double>(options_.m_mul), period);
  const double cosine = 0.5 * height * (1.0 + std::cos(std::numbers::pi * part));
  return static_cast<float>(initial_learning_rate_ * ((1.0 - alpha) * cosine + alpha));
}

}  // namespace holdfast
