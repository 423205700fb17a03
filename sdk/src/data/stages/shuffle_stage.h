#pragma once

// Permutes each window of samples, anew in each epoch. An order is a function of (seed, epoch, window),
// so there is no shuffle buffer whose state a run would have to save. The last two orders are kept.

#include <array>
#include <mutex>
#include <vector>

#include "data/stages/stage.h"

namespace holdfast {

class ShuffleStage : public ChainedStage {
 public:
  ShuffleStage(std::shared_ptr<const Stage> before, std::int64_t window);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  const Stage* source() const override { return before().source(); }
  std::int64_t source_position(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override;
  PositionSet reach(const PositionSet& positions, std::size_t) const override;
  bool is_same_in_all_epochs() const override { return false; }
  StageKind kind() const override { return StageKind::shuffle; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  using Order = std::vector<std::uint32_t>;

  struct Key {
    std::uint64_t seed;
    std::int64_t epoch;
    std::int64_t window;  // number of the window in the epoch

    friend bool operator==(const Key&, const Key&) = default;
  };

  struct CachedOrder {
    Key key{};
    Order order;  // empty if unused
  };

  Order draw_order(const Key& key) const;
  // The position of the sample in the stage before.
  std::int64_t position_before(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const;
  std::uint32_t source_in_window(const Key& key, std::size_t index) const;

  std::int64_t window_;  // samples

  // Two orders, because a batch may cross the border of two windows or epochs, and a validation epoch
  // may come between.
  mutable std::mutex mutex_;
  mutable std::array<CachedOrder, 2> cache_;  // guarded by mutex_; the most recently used one is first
};

}  // namespace holdfast
