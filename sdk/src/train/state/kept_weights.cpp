// The copy lies where the weights lie, so keeping it is one pass on the device. fit() ends by an exchange and not by a
// copy: a fit() that gets more epochs goes on with the weights of its last epoch, as if nothing had been restored.
// docs/decisions/training-loop.md

#include "train/state/kept_weights.h"

#include <algorithm>
#include <utility>

namespace holdfast {

std::vector<StateSpan> weights_of(Trainable& trainable) {
  std::vector<StateSpan> weights = trainable.state();
  std::erase_if(weights, [](const StateSpan& span) { return span.kind == StateKind::optimizer_slot; });
  return weights;
}

namespace {

// The moving averages, too: they are slots, but they are weights for a call that evaluates them.
std::vector<StateSpan> kept_of(Trainable& trainable) {
  std::vector<StateSpan> kept = trainable.state();
  std::erase_if(kept, [](const StateSpan& span) {
    return span.kind == StateKind::optimizer_slot && !span.name.starts_with("optimizer/moving_average/");
  });
  return kept;
}

}  // namespace

void KeptWeights::lay_out(bool has_room, Trainable& trainable) {
  if (has_room == this->has_room()) return;
  layout_ = {};
  kinds_.clear();
  floats_.reset();
  if (!has_room) return;
  for (const StateSpan& weight : kept_of(trainable)) {
    layout_.add("kept/" + weight.name, weight.shape);
    // The optimizer does not know the copy.
    kinds_.push_back(weight.kind == StateKind::optimizer_slot ? StateKind::buffer : weight.kind);
  }
  // A model without weights has an arena, too, so that has_room() says what was asked for.
  floats_ = trainable.memory().allocate(std::max<std::size_t>(layout_.float_count(), 1));
}

std::vector<StateSpan> KeptWeights::spans() const {
  std::vector<StateSpan> spans;
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    const ArenaEntry& entry = layout_.entries()[i];
    spans.push_back({entry.name, kinds_[i], entry.shape, layout_.view(arena(), i)});
  }
  return spans;
}

// Both lists are in the order of the Trainable's state, so arrays belong together by their places.
void KeptWeights::keep(Trainable& trainable) {
  const std::vector<StateSpan> kept = spans();
  const std::vector<StateSpan> weights = kept_of(trainable);
  for (std::size_t i = 0; i < kept.size(); ++i) trainable.memory().copy(weights[i].values, kept[i].values);
}

void KeptWeights::exchange(Trainable& trainable) {
  MemorySpace& memory = trainable.memory();
  const std::vector<StateSpan> kept = spans();
  const std::vector<StateSpan> weights = kept_of(trainable);
  // In pieces, since an array may be as large as all others together.
  constexpr std::size_t kPiece = 1 << 18;
  const std::shared_ptr<float[]> between = memory.allocate(kPiece);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    for (std::size_t begin = 0; begin < kept[i].values.size(); begin += kPiece) {
      const std::size_t count = std::min(kPiece, kept[i].values.size() - begin);
      const std::span<float> copy(between.get(), count);
      memory.copy(kept[i].values.subspan(begin, count), copy);
      memory.copy(weights[i].values.subspan(begin, count), kept[i].values.subspan(begin, count));
      memory.copy(copy, weights[i].values.subspan(begin, count));
    }
  }
  // The memory in between must not go while a device still copies.
  memory.wait();
}

Digest KeptWeights::weights_digest(MemorySpace& memory) const {
  std::vector<std::span<const float>> parameters;
  for (const StateSpan& span : spans()) {
    if (span.kind == StateKind::parameter) parameters.emplace_back(span.values);
  }
  return memory.digest_of(parameters);
}

std::vector<StateSpan> StateArrays::spans() const {
  std::vector<StateSpan> spans = trainable_->state();
  if (kept_ == nullptr) return spans;
  for (StateSpan& span : kept_->spans()) spans.push_back(std::move(span));
  return spans;
}

void StateArrays::lay_out(const TrainState& state) const {
  trainable_->lay_out(laid_out_training(state));
  if (kept_ != nullptr) kept_->lay_out(keeps_weights(state), *trainable_);
}

}  // namespace holdfast
