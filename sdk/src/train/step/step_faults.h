#pragma once

// What wraps a step and what it trains: both do as the one inside does, report where they are, and change numbers or
// wait if an injected fault asks for it. Without faults they change nothing. docs/faults.md

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "holdfast/train/trainable.h"
#include "train/context/replica_context.h"
#include "train/step/step.h"

namespace holdfast {

// The injected faults of a Trainable.
class FaultyTrainable {
 public:
  // Both outlive it.
  FaultyTrainable(Supervision& supervision, Trainable& inner) : supervision_(supervision), inner_(inner) {}

  // Training reaches `point`. Faults may also change the state there.
  void reach(FaultPoint point, std::int64_t step);

  // A shard of `step` was computed: faults may change its gradients, and its loss in `sums`.
  void end_backward(std::int64_t step, GradientSink& sink, std::span<float> sums);
  void apply_update(const Update& update);

 private:
  // What a fault may change.
  struct Floats {
    std::vector<std::span<float>> on_host{};
    std::vector<std::span<float>> in_memory{};  // of the Trainable
  };
  // Returns whether something was changed.
  bool corrupt(FaultPoint point, std::int64_t step, const std::function<Floats(FaultTarget)>& floats_of);
  std::vector<std::span<float>> state_floats(FaultTarget target);
  MemorySpace& memory() const { return inner_.memory(); }

  Supervision& supervision_;
  Trainable& inner_;
};

// A step whose phases the watchdog learns of, with the faults that are injected between phases, and as slow as such a
// fault wants it. Throws GenerationEnded instead of an update that this replica may not make (Supervision::may_change).
class WatchedStep final : public StepWrapper {
 public:
  // `own_samples` of the batch are computed here. All references outlive it.
  WatchedStep(Step& inner, Supervision& supervision, FaultyTrainable& faulty, std::int64_t step,
              std::int64_t own_samples)
      : StepWrapper(inner), supervision_(supervision), faulty_(faulty), step_(step), own_samples_(own_samples) {}

  void sum_divisors() override;
  void share_divisors() override;
  void forward_and_backward() override;
  StepSum sum_over_ranks() override;
  void update(const StepSum& sum) override;

 private:
  Supervision& supervision_;
  FaultyTrainable& faulty_;
  const std::int64_t step_;
  const std::int64_t own_samples_;
};

}  // namespace holdfast
