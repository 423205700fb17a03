#pragma once

// One step of training as it is told: carry_out() is the whole of it. Each rank computes its shards, the sums of all
// shards are added, the ranks agree on what came out, and each updates its state. What a phase does is in
// StepArithmetic. What surrounds a phase wraps it: WatchedStep reports it and injects faults, DisputableStep checks
// gradients. docs/decisions/sums.md

#include <optional>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "train/context/requests.h"
#include "train/step/gradient_check.h"

namespace holdfast {

// A sum over all shards, complete on every rank, before any rank has applied it.
struct StepSum {
  Sums block;
  bool is_finite = true;
};

// Over the whole global batch; the same on every rank.
struct StepOutcome {
  std::vector<double> sums;        // one for each of Trainable::sum_names()
  double weight = 0;               // of the samples, if they have weights
  std::vector<double> divisors{};  // of the batch, if the Trainable has divisors of its own
  StepRequests requests{};         // that some rank made with this step
  // Whether the sum is, or was, to be applied: nobody disputes it, and it is finite or is applied nevertheless.
  bool is_to_apply = false;
  // Which sum or gradient is NaN or infinite, so that nothing was applied; empty if all are finite.
  std::string not_finite{};
  // Set only if the ranks disagreed about gradients, so that the step was computed again. The update was applied if
  // they agree now.
  std::optional<CheckVerdict> check{};
  std::string check_reports{};  // what each rank computed, both times
};

// The phases of a step on one rank.
class Step {
 public:
  virtual ~Step() = default;

  // Whether the batch is divided by numbers that no shard knows alone.
  virtual bool has_divisors() const = 0;
  virtual void sum_divisors() = 0;
  virtual void share_divisors() = 0;
  virtual void forward_and_backward() = 0;
  virtual StepSum sum_over_ranks() = 0;
  // Every rank has the same sum, and so comes to the same conclusion. May move the sum to other memory.
  virtual StepOutcome agree(StepSum& sum) = 0;
  virtual void update(const StepSum& sum) = 0;
};

inline void find_divisors(Step& step) {
  if (!step.has_divisors()) return;
  step.sum_divisors();
  step.share_divisors();
}

// The other ranks do the same with their shards at the same time. Nothing of the state changes before every rank has
// the whole sum, so a failure before that point costs no rank its state.
inline StepOutcome carry_out(Step& step) {
  find_divisors(step);
  // Gradients that are complete are on their way to the other ranks meanwhile.
  step.forward_and_backward();
  // Over all shards, in the order of the tree: the same bits on every rank.
  StepSum sum = step.sum_over_ranks();
  StepOutcome outcome = step.agree(sum);
  if (outcome.is_to_apply) step.update(sum);
  return outcome;
}

// A step that does as the one inside does. What surrounds a phase overrides it.
class StepWrapper : public Step {
 public:
  // The step outlives it.
  explicit StepWrapper(Step& inner) : inner_(inner) {}

  bool has_divisors() const override { return inner_.has_divisors(); }
  void sum_divisors() override { inner_.sum_divisors(); }
  void share_divisors() override { inner_.share_divisors(); }
  void forward_and_backward() override { inner_.forward_and_backward(); }
  StepSum sum_over_ranks() override { return inner_.sum_over_ranks(); }
  StepOutcome agree(StepSum& sum) override { return inner_.agree(sum); }
  void update(const StepSum& sum) override { inner_.update(sum); }

 protected:
  Step& inner() { return inner_; }

 private:
  Step& inner_;
};

}  // namespace holdfast
