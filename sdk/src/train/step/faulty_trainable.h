#pragma once

// A Trainable with injected faults: it computes and updates as the one inside does, reports the fault points that it
// reaches, and changes numbers if a fault asks for it. Without faults it changes nothing. docs/faults.md

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "holdfast/train/trainable.h"
#include "train/context/replica_context.h"

namespace holdfast {

class FaultyTrainable {
 public:
  // Both outlive it.
  FaultyTrainable(Supervision& supervision, Trainable& inner) : supervision_(supervision), inner_(inner) {}

  // Training reaches `point`. Faults may also change the state there.
  void reach(FaultPoint point, std::int64_t step);

  void compute_gradients(const ShardBatch& batch, GradientSink& sink, std::span<float> sums);
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

}  // namespace holdfast
