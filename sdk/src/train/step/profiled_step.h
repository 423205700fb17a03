#pragma once

#include "train/context/step_profile.h"
#include "train/step/step.h"

namespace holdfast {

// A step whose phases are spans.
class ProfiledStep final : public StepWrapper {
 public:
  // Both outlive it.
  ProfiledStep(Step& inner, StepProfile& profile) : StepWrapper(inner), profile_(profile) {}

  void sum_divisors() override;
  void share_divisors() override;
  void forward_and_backward() override;
  StepSum sum_over_ranks() override;
  StepOutcome agree(StepSum& sum) override;
  void update(const StepSum& sum) override;

 private:
  StepProfile& profile_;
};

}  // namespace holdfast
