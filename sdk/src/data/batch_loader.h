#pragma once

// Gives a replica its shards of batch after batch, from a cursor on, loaded ahead by threads of its own as many and as
// deep as the data set asks. Which samples a shard gets depends on (seed, epoch, batch, shard, number of shards) alone.
// For one thread; the views may be read by several.
//
//   free buffers --loading thread--> loaded batches, oldest first --next()--> the batch in use --next()--> free buffers

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "core/worker_pool.h"
#include "data/pinned_samples.h"
#include "data/resident_samples.h"
#include "data/staged_batches.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

std::int64_t samples_of_batch(const Dataset& dataset, std::int64_t index);
// Position in its batch of the first sample of a shard; of `shards`, the end.
std::int64_t begin_of_shard(std::int64_t batch_samples, int shard, int shards);

struct ShardSlice {
  std::int64_t first_sample = 0;    // position in the global batch
  std::int64_t samples = 0;         // may be 0
  std::span<const float> features;  // [samples, feature shape]
  std::span<const float> targets;   // [samples, target shape]
};

struct Batch {
  std::int64_t epoch = 0;
  std::int64_t index = 0;    // in the epoch
  std::int64_t samples = 0;  // of the whole global batch
  std::vector<ShardSlice> shards;
  bool is_on_device = false;  // the views are of the memory space that the samples are kept in
};

// The samples of shards [first_shard, end_shard) of one batch, loaded by the calling thread: for whoever needs them out
// of turn. The same bits as a BatchLoader's.
class LoadedShards {
 public:
  LoadedShards(const Dataset& dataset, std::uint64_t seed, int total_shards, int first_shard, int end_shard,
               std::int64_t epoch, std::int64_t batch_index);
  LoadedShards(LoadedShards&&) = default;
  LoadedShards& operator=(LoadedShards&&) = default;

  // Of these shards alone. Its views are valid as long as this object, also once that has moved.
  const Batch& batch() const { return batch_; }

 private:
  std::vector<float> features_;
  std::vector<float> targets_;
  Batch batch_;
};

// How samples get to a device; with none of these they are loaded into the host's memory.
struct SampleWays {
  // Without being loaded one by one: only which samples a batch has is found ahead.
  ResidentSamples* resident = nullptr;  // outlives whoever takes samples from it
  SampleFeeds feeds{};                  // for data sets that are loaded ahead
  // Where neither is there: makes feeds of rows that batches are loaded into, ahead, or none.
  std::function<SampleFeeds(const HostRows&)> stage{};
};

class BatchLoader {
 public:
  // Begins with batch `batch_index` of `epoch` (the number of batches stands for the next epoch's first one) and ends
  // before `end_epoch`. This replica has the shards [first_shard, end_shard) of `total_shards`. Throws
  // Error{invalid_argument} for a data set without a batch size; asserts the rest.
  BatchLoader(Dataset dataset, std::uint64_t seed, int total_shards, int first_shard, int end_shard, std::int64_t epoch,
              std::int64_t batch_index, std::int64_t end_epoch, SampleWays ways = {});
  // Blocks until the samples that are just being loaded are done, one by each thread.
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // Views are valid until the following call; nullopt behind the last batch. Blocks while the batch is being loaded,
  // which has no deadline: how long user functions may take is the watchdog's matter. What loading threw is rethrown
  // when its batch is due; no batch follows it.
  std::optional<Batch> next();

 private:
  // Ahead where these are all that is found ahead: what they take is little, and to wake a thread takes longer than to
  // queue a step on a device.
  static constexpr std::size_t kPlacesOfPositions = 16;

  struct Cursor {
    std::int64_t epoch;
    std::int64_t index;
  };

  struct LoadedBatch {
    Cursor cursor{};
    std::vector<float> features;  // of this replica's samples, one after another
    std::vector<float> targets;
    std::vector<std::int64_t> positions;  // in the source, or of the staged rows
    std::optional<StagedBatches::Room> room;
  };

  bool is_at_end(const Cursor& cursor) const { return cursor.epoch >= end_epoch_ || dataset_.batches() == 0; }
  Cursor following(const Cursor& cursor) const;
  // False when it was stopped half-way.
  bool load(const Cursor& cursor, LoadedBatch& batch, const std::stop_token& stop) const;
  Batch view(const LoadedBatch& batch) const;
  Batch view(const LoadedBatch& batch, std::span<const float> features, std::span<const float> targets) const;

  void stage(SampleWays& ways);
  bool is_fed() const { return feeds_.are_there(); }
  bool needs_positions_only() const { return resident_ != nullptr || (is_fed() && staged_ == nullptr); }
  std::optional<Batch> load_in_this_thread();
  // The oldest that is loaded, for which it waits; null behind the last one.
  std::unique_ptr<LoadedBatch> wait_for_loaded();
  void give_back(std::unique_ptr<LoadedBatch> batch);
  bool is_any_loaded();
  std::optional<Batch> next_fed();
  void send_next();
  void run(const std::stop_token& stop);
  void load_all(const std::stop_token& stop);

  const Dataset dataset_;
  const std::uint64_t seed_;
  const int total_shards_;
  const int first_shard_;
  const int end_shard_;
  const std::int64_t end_epoch_;
  std::size_t wakes_at_ = 1;  // free places, for the loading thread to go on
  ResidentSamples* const resident_;
  std::unique_ptr<StagedBatches> staged_;  // what feeds_ read, if that is not a source
  SampleFeeds feeds_;                      // the caller's thread alone uses them

  Cursor cursor_;                         // of the batch to load next; the loading thread's where there is one
  std::unique_ptr<LoadedBatch> current_;  // in use by the caller
  std::unique_ptr<LoadedBatch> sent_;     // on its way to the device

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_.
  std::deque<std::unique_ptr<LoadedBatch>> free_;
  std::deque<std::unique_ptr<LoadedBatch>> loaded_;
  bool is_finished_ = false;  // the loading thread will add no more
  std::exception_ptr failure_;

  std::unique_ptr<WorkerPool> pool_;  // the loading thread's; null where that loads alone

  std::jthread thread_;  // last: stopped and joined before the rest goes
};

}  // namespace holdfast
