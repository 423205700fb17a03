// Adam and AdamW update parameters and both slots in one pass over memory. The scalars of a step are
// computed once, in double, on the host, so every device gets the same floats. See
// docs/decisions/optimizers.md.

#include "optim/adam_pass.h"

#include <cmath>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "optim/update_description.h"

namespace holdfast {

compute::AdamStep adam_step(std::int64_t step, const AdamRates& rates) {
  HOLDFAST_ASSERT(step >= 1);
  const double correction_1 = 1.0 - std::pow(static_cast<double>(rates.beta_1), static_cast<double>(step));
  const double correction_2 = 1.0 - std::pow(static_cast<double>(rates.beta_2), static_cast<double>(step));
  // Both bias corrections are folded into the rate (Kingma and Ba, 2015, end of section 2). So
  // epsilon is added to a root that is not corrected, as in Keras.
  return {.beta_1_rest = 1.0F - rates.beta_1,
          .beta_2_rest = 1.0F - rates.beta_2,
          .rate = static_cast<float>(rates.learning_rate * std::sqrt(correction_2) / correction_1),
          .epsilon = rates.epsilon,
          .kept = rates.kept};
}

// The order of the operations is that of the loop of Adam, so both give the same bits where v never falls.
std::shared_ptr<const UpdatePass> amsgrad_pass(const AdamRates& rates) {
  const Value parameter = update_argument("parameter"), gradient = update_argument("gradient");
  const Value m = update_argument("m"), v = update_argument("v"), v_hat = update_argument("v_hat");
  const Value rate = update_argument("rate"), kept = update_argument("kept");
  const Value next_m = m + (gradient - m) * (1.0F - rates.beta_1);
  const Value next_v = v + (square(gradient) - v) * (1.0F - rates.beta_2);
  const Value next_v_hat = maximum(v_hat, next_v);
  const Value next = parameter * kept - next_m * rate / (square_root(next_v_hat) + rates.epsilon);
  return std::make_shared<UpdatePass>(UpdatePass{compile_update({.optimizer = "adam",
                                                                 .arguments = {parameter, gradient, m, v, v_hat},
                                                                 .numbers = {rate, kept},
                                                                 .results = {next, next_m, next_v, next_v_hat}})});
}

UpdatePass amsgrad_step(const UpdatePass& pass, std::int64_t step, const AdamRates& rates) {
  const compute::AdamStep numbers = adam_step(step, rates);
  auto program = std::get<compute::ElementProgram>(pass.step);
  program.constants[0] = numbers.rate;
  program.constants[1] = numbers.kept;
  return {program};
}

}  // namespace holdfast
