#include "train/step/profiled_step.h"

namespace holdfast {

void ProfiledStep::sum_divisors() {
  profile_.enter(StepProfile::kFit, "sum_divisors");
  inner().sum_divisors();
}

void ProfiledStep::share_divisors() {
  profile_.enter(StepProfile::kFit, "share_divisors");
  inner().share_divisors();
}

void ProfiledStep::forward_and_backward() {
  profile_.enter(StepProfile::kFit, "forward_and_backward");
  inner().forward_and_backward();
}

StepSum ProfiledStep::sum_over_ranks() {
  profile_.enter(StepProfile::kFit, "sum_over_ranks");
  return inner().sum_over_ranks();
}

StepOutcome ProfiledStep::agree(StepSum& sum) {
  profile_.enter(StepProfile::kFit, "agree");
  return inner().agree(sum);
}

void ProfiledStep::update(const StepSum& sum) {
  profile_.enter(StepProfile::kFit, "update");
  inner().update(sum);
}

}  // namespace holdfast
