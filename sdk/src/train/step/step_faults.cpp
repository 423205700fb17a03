// Injected faults must take the path of real ones. So bits are changed where the step reads them next, and nothing here
// tells the training that it happened. See docs/decisions/testing.md.

#include "train/step/step_faults.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>

namespace holdfast {
namespace {

// Makes this replica as slow as an injected fault wants it: delay() sleeps for a multiple of the time since
// construction.
class InjectedSlowness {
 public:
  InjectedSlowness(Supervision& supervision, std::int64_t step) : supervision_(supervision), step_(step) {}
  InjectedSlowness(const InjectedSlowness&) = delete;
  InjectedSlowness& operator=(const InjectedSlowness&) = delete;

  void delay() const {
    const double factor = supervision_.slowdown(step_);
    // A slow processor is imitated, not a fixed delay: the factor holds for steps of any length.
    if (factor > 1) std::this_thread::sleep_for((std::chrono::steady_clock::now() - begin_) * (factor - 1));
  }

 private:
  Supervision& supervision_;
  const std::int64_t step_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

void FaultyTrainable::reach(FaultPoint point, std::int64_t step) {
  supervision_.reach(point, step);
  corrupt(point, step, [this](FaultTarget target) { return Floats{.in_memory = state_floats(target)}; });
}

void FaultyTrainable::end_backward(std::int64_t step, GradientSink& sink, std::span<float> sums) {
  supervision_.reach(FaultPoint::backward, step);
  const bool is_changed = corrupt(FaultPoint::backward, step, [&](FaultTarget target) {
    return target == FaultTarget::loss ? Floats{.on_host = {sums.first(1)}} : Floats{.in_memory = {sink.gradients()}};
  });
  // What the Trainable said of its gradients may no longer be true.
  if (is_changed && sink.is_finite()) sink.set_finite(memory().is_finite(sink.gradients()));
}

// The ranks have agreed on the sum by then, so only a later comparison of their states can find such a fault.
void FaultyTrainable::apply_update(const Update& update) {
  const std::int64_t step = update.step - 1;
  supervision_.reach(FaultPoint::before_update, step);
  Update changed = update;
  // A copy, since the reduced sums lie in memory that other ranks read.
  std::shared_ptr<float[]> copy;
  corrupt(FaultPoint::before_update, step, [&](FaultTarget target) {
    if (target != FaultTarget::gradient) return Floats{.in_memory = state_floats(target)};
    const std::size_t count = update.gradients.size();
    if (!copy) {
      copy = memory().allocate(count);
      memory().copy(update.gradients, {copy.get(), count});
    }
    changed.gradients = {copy.get(), count};
    return Floats{.in_memory = {{copy.get(), count}}};
  });
  inner_.apply_update(changed);
}

// Arrays on a device are changed in a copy on the host.
bool FaultyTrainable::corrupt(FaultPoint point, std::int64_t step,
                              const std::function<Floats(FaultTarget)>& floats_of) {
  struct Copy {
    std::span<float> original;
    std::vector<float> values;
  };
  std::list<Copy> copies;
  bool is_changed = false;
  supervision_.corrupt(point, step, [&](FaultTarget target) {
    is_changed = true;
    Floats floats = floats_of(target);
    for (const std::span<float> array : floats.in_memory) {
      if (memory().is_host()) {
        floats.on_host.push_back(array);
        continue;
      }
      Copy& copy = copies.emplace_back(Copy{.original = array, .values = std::vector<float>(array.size())});
      memory().copy_to_host(array, copy.values);
      floats.on_host.emplace_back(copy.values);
    }
    return floats.on_host;
  });
  // After corrupt() has changed the copies: the device then goes on with the changed bits.
  for (const Copy& copy : copies) memory().copy_from_host(copy.values, copy.original);
  return is_changed;
}

std::vector<std::span<float>> FaultyTrainable::state_floats(FaultTarget target) {
  const StateKind kind = target == FaultTarget::slot ? StateKind::optimizer_slot : StateKind::parameter;
  std::vector<std::span<float>> floats;
  for (const StateSpan& span : inner_.state()) {
    if (span.kind == kind) floats.push_back(span.values);
  }
  return floats;
}

void WatchedStep::sum_divisors() {
  supervision_.enter(TrainingPhase::computing, step_);
  inner().sum_divisors();
}

void WatchedStep::share_divisors() {
  supervision_.enter(TrainingPhase::waiting_for_peers, step_);
  inner().share_divisors();
}

void WatchedStep::forward_and_backward() {
  supervision_.enter(TrainingPhase::computing, step_);
  faulty_.reach(FaultPoint::forward, step_);
  const InjectedSlowness slowness(supervision_, step_);
  inner().forward_and_backward();
  slowness.delay();
}

StepSum WatchedStep::sum_over_ranks() {
  supervision_.enter(TrainingPhase::waiting_for_peers, step_);
  supervision_.reach(FaultPoint::reduce, step_);
  return inner().sum_over_ranks();
}

// The state is whole here, and of the step before, so this rank takes it along to its next generation.
void WatchedStep::update(const StepSum& sum) {
  if (!supervision_.may_change()) {
    throw GenerationEnded(
        fmt::format("this host has lost the run's head, so update {} is not applied here", step_ + 1));
  }
  supervision_.enter(TrainingPhase::updating, step_);
  inner().update(sum);
  // Own samples only: each process counts what it has trained on itself.
  supervision_.count_samples(own_samples_);
}

}  // namespace holdfast
