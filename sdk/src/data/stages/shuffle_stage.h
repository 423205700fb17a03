#pragma once

// Permutes each window of samples, anew in each epoch. An order is a function of (seed, epoch, window),
// so there is no shuffle buffer whose state a run would have to save. The last two orders are kept.

#include "core/kept_orders.h"
#include "data/stages/stage.h"

namespace holdfast {

class ShuffleStage : public ChainedStage {
 public:
  ShuffleStage(std::shared_ptr<const Stage> before, std::int64_t window);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    before().expect(seed, epoch, position_before(seed, epoch, position));
  }
  const Stage* source() const override { return before().source(); }
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override;
  PositionSet reach(const PositionSet& positions, std::size_t) const override;
  bool is_same_in_all_epochs() const override { return false; }
  StageKind kind() const override { return StageKind::shuffle; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  struct Key {
    std::uint64_t seed;
    std::int64_t epoch;
    std::int64_t window;  // number of the window in the epoch

    friend bool operator==(const Key&, const Key&) = default;
  };

  SampleOrder draw_order(const Key& key) const;
  // The position of the sample in the stage before.
  std::int64_t position_before(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const;

  std::int64_t window_;  // samples
  KeptOrders<Key> orders_;
};

}  // namespace holdfast
