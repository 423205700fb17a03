// learning_rates_program: prints one line of JSON for each of some schedules, with its configuration and the rates
// after 0, 1, 2, ... updates.

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "holdfast/holdfast.h"

int main() {
  using namespace holdfast;
  const ExponentialDecay exponential{0.1F, 30, 0.96F};
  const ExponentialDecay stairs{0.1F, 30, 0.5F, {.staircase = true}};
  const CosineDecay cosine{0.1F, 80};
  const CosineDecay cosine_to_a_part{0.1F, 80, {.alpha = 0.05F}};
  const CosineDecay warm{0.01F, 80, {.alpha = 0.1F, .warmup_target = 0.2F, .warmup_steps = 20}};
  const CosineDecay warm_without_target{0.1F, 80, {.warmup_steps = 20}};
  const CosineDecayRestarts restarts{0.1F, 16};
  const CosineDecayRestarts equal_restarts{0.1F, 32, {.t_mul = 1, .m_mul = 0.5F, .alpha = 0.05F}};
  const InverseTimeDecay slower{0.1F, 30, 0.5F};
  const InverseTimeDecay slower_stairs{0.1F, 30, 2, {.staircase = true}};
  const PolynomialDecay linear{0.1F, 80};
  const PolynomialDecay quadratic{0.1F, 80, {.end_learning_rate = 0.01F, .power = 2}};
  const PolynomialDecay cycles{0.1F, 30, {.end_learning_rate = 0.01F, .power = 0.5F, .cycle = true}};
  const PiecewiseConstantDecay pieces{{10, 50}, {0.1F, 0.02F, 0.003F}};
  const std::vector<const LearningRateSchedule*> schedules = {
      &exponential, &stairs, &cosine,   &cosine_to_a_part, &warm,   &warm_without_target, &linear, &quadratic,
      &cycles,      &pieces, &restarts, &equal_restarts,   &slower, &slower_stairs};
  for (const LearningRateSchedule* const schedule : schedules) {
    nlohmann::json rates = nlohmann::json::array();
    for (std::int64_t updates = 0; updates < 130; ++updates) rates.push_back(schedule->rate_after(updates));
    const nlohmann::json line = {{"configuration", nlohmann::json::parse(schedule->configuration())}, {"rates", rates}};
    std::puts(line.dump().c_str());
  }
}
