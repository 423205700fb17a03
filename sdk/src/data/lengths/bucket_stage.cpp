// Full batches of one bucket come first, in an order that mixes the buckets; what fills no batch of its bucket comes
// last, neighbours in length together. So each sample comes once an epoch whatever the sizes of the buckets, and
// batch() needs to know nothing of them. See docs/decisions/sequences.md.

#include "data/lengths/bucket_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "data/lengths/sample_length.h"
#include "data/passes/sample_index.h"
#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

Error refused_buckets(const std::string& reason) {
  return Error(ErrorCode::invalid_argument, fmt::format("bucketed(): {}", reason));
}

void check_buckets(const Stage& before, std::int64_t batch, const std::vector<std::int64_t>& bounds) {
  if (batch < 1) throw refused_buckets(fmt::format("a batch has one sample or more, not {}", batch));
  if (bounds.empty()) {
    throw refused_buckets("needs bounds, the longest samples of all buckets but the last: {.bounds = {16, 32}}");
  }
  // Bounds are the longest lengths of their buckets, bound included, and the last bucket has none. Equal bounds would
  // make a bucket that no sample can enter.
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (bounds[i] >= (i == 0 ? 0 : bounds[i - 1] + 1)) continue;
    throw refused_buckets(fmt::format("bounds rise and begin at 0 or above, so bound {} cannot be {}", i, bounds[i]));
  }
  if (const char* mixing = mixing_stage(before)) {
    throw refused_buckets(fmt::format(
        "it stands after {}, which brings other samples to a position in each epoch; leave that stage out, since "
        "buckets are shuffled anyway",
        mixing));
  }
  if (before.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("bucketed() takes up to 4294967295 samples, not {}; use parts of them", before.size()));
  }
}

// A length may be what a map() made, which must not draw it: epoch 0 stands for all.
std::vector<SampleOrder> find_buckets(const Stage& before, const BucketOptions& options) {
  std::function<std::int64_t(const SampleArrays&)> length_of = options.length_of;
  if (!length_of) {
    const SampleLength length("bucketed", before.layouts());
    length_of = [length](const SampleArrays& sample) { return length.of(sample.inputs); };
  }
  std::vector<SampleOrder> buckets(options.bounds.size() + 1);
  const std::vector<std::int64_t> lengths =
      numbers_of_samples(before, {.stage = "bucketed()", .index = options.index}, length_of);
  for (std::size_t position = 0; position < lengths.size(); ++position) {
    const std::int64_t length = lengths[position];
    if (length < 0) throw refused_buckets(fmt::format("sample {} has the length {}, below 0", position, length));
    const auto bucket = std::ranges::lower_bound(options.bounds, length) - options.bounds.begin();
    buckets[static_cast<std::size_t>(bucket)].push_back(static_cast<std::uint32_t>(position));
  }
  return buckets;
}

// The number of samples comes before each bucket. Otherwise a sample that moves over the border of two buckets could
// leave the digest as it was.
std::string digest_of_buckets(const std::vector<SampleOrder>& buckets) {
  DigestBuilder builder;
  for (const SampleOrder& bucket : buckets) {
    const std::uint64_t samples = bucket.size();
    builder.update(std::as_bytes(std::span(&samples, 1)));
    builder.update(std::as_bytes(std::span(bucket)));
  }
  return builder.finish().hex();
}

}  // namespace

BucketStage::BucketStage(std::shared_ptr<const Stage> stage, std::int64_t batch, BucketOptions options)
    : ChainedStage(stage, stage->size()),
      batch_(batch),
      shuffles_(options.shuffle),
      bounds_(std::move(options.bounds)) {
  // Before any sample is loaded. The bounds were moved out of the options, which find_buckets() takes whole.
  check_buckets(before(), batch_, bounds_);
  options.bounds = bounds_;
  buckets_ = find_buckets(before(), options);
  digest_ = digest_of_buckets(buckets_);
}

// Buckets are permuted first, each by draws of its own, and cut into batches, whose order is drawn then. Batches are
// views of the permuted buckets, which must not change from there on. Nothing here may depend on threads or on what was
// loaded before: any replica draws the same order again.
SampleOrder BucketStage::draw_order(const Key& key) const {
  const auto draws = [&](std::size_t minor) {
    return Random(key.seed, Purpose::shuffle, draw_major(*this, key.epoch), minor);
  };
  std::vector<SampleOrder> buckets = buckets_;
  std::vector<std::span<const std::uint32_t>> batches;
  const auto samples = static_cast<std::size_t>(batch_);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    Random random = draws(i);
    if (shuffles_) permute(std::span(buckets[i]), random);
    for (std::size_t begin = 0; buckets[i].size() - begin >= samples; begin += samples) {
      batches.push_back(std::span(buckets[i]).subspan(begin, samples));
    }
  }
  Random random = draws(buckets.size());
  if (shuffles_) permute(std::span(batches), random);
  for (const SampleOrder& bucket : buckets) {
    const std::size_t rest = bucket.size() % samples;
    // What fills no batch, from the bucket of the shortest samples to that of the
    // longest, so neighbours have similar lengths.
    batches.push_back(std::span(bucket).last(rest));
  }
  SampleOrder order;
  order.reserve(static_cast<std::size_t>(size()));
  for (const std::span<const std::uint32_t> batch : batches) order.insert(order.end(), batch.begin(), batch.end());
  return order;
}

std::int64_t BucketStage::position_before(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const {
  // Without a shuffle all epochs have one order, which is then drawn once.
  const Key key = shuffles_ ? Key{.seed = seed, .epoch = epoch} : Key{.seed = 0, .epoch = 0};
  return orders_.at(key, static_cast<std::size_t>(position), [&] { return draw_order(key); });
}

void BucketStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  before().load(seed, epoch, position_before(seed, epoch, position), destination);
}

void BucketStage::load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                               std::span<float> targets) const {
  before().load_targets(seed, epoch, position_before(seed, epoch, position), targets);
}

SampleOrigin BucketStage::origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const {
  return before().origin(seed, epoch, position_before(seed, epoch, position));
}

// Any position may get any sample.
PositionSet BucketStage::reach(const PositionSet& positions, std::size_t) const {
  return positions.is_empty() ? positions : PositionSet::below(size());
}

void BucketStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  stages.push_back(
      {{"kind", "bucketed"}, {"batch", batch_}, {"bounds", bounds_}, {"shuffle", shuffles_}, {"digest", digest_}});
}

Dataset Dataset::bucketed(std::int64_t batch, BucketOptions options) const {
  check_is_open("bucketed");
  return Dataset(std::make_shared<BucketStage>(stage_, batch, std::move(options)));
}

}  // namespace holdfast
