#pragma once

// Orders the samples of an epoch so that a batch has samples of similar length. The lengths are found once; an order is
// a function of (seed, epoch), and the last two are kept.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/kept_orders.h"
#include "data/stages/stage.h"

namespace holdfast {

class BucketStage : public ChainedStage {
 public:
  // Loads each sample of epoch 0. Throws as Dataset::bucketed() does.
  BucketStage(std::shared_ptr<const Stage> before, std::int64_t batch, BucketOptions options);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    before().expect(seed, epoch, position_before(seed, epoch, position));
  }
  void load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                    std::span<float> targets) const override;
  const Stage* source() const override { return before().source(); }
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override;
  PositionSet reach(const PositionSet& positions, std::size_t parent) const override;
  bool is_same_in_all_epochs() const override { return !shuffles_ && before().is_same_in_all_epochs(); }
  StageKind kind() const override { return StageKind::bucketed; }
  void describe(nlohmann::ordered_json& stages) const override;

 private:
  struct Key {
    std::uint64_t seed;
    std::int64_t epoch;

    friend bool operator==(const Key&, const Key&) = default;
  };

  SampleOrder draw_order(const Key& key) const;
  // The position of the sample in the stage before.
  std::int64_t position_before(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const;

  std::int64_t batch_;  // samples
  bool shuffles_;
  std::vector<std::int64_t> bounds_;
  std::vector<SampleOrder> buckets_;  // positions in the stage before, rising in each bucket
  std::string digest_;                // of the buckets
  KeptOrders<Key> orders_;
};

}  // namespace holdfast
