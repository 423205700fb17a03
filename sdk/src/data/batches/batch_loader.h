#pragma once

// Gives a replica its shards of batch after batch, starting at any batch. With Dataset::prefetch(), a
// thread of the loader and its helpers load as many batches ahead as the data set asks for. Which
// samples a shard gets depends only on (seed, epoch, batch, shard, number of shards). For one thread;
// several threads may read the views.
//
//   free buffers --loading thread--> loaded batches, oldest first --next()--> the batch in use --next()--> free buffers
//
// docs/decisions/loading.md

#include <chrono>
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
#include "data/batches/pinned_samples.h"
#include "data/batches/resident_samples.h"
#include "data/batches/staged_batches.h"
#include "data/batches/thread_choice.h"
#include "data/stages/stage.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// The number of samples in `together` batches of an epoch from number `index` on, as far as there are so many; the last
// batch may be smaller.
std::int64_t samples_of_batch(const Dataset& dataset, std::int64_t index, std::int64_t together = 1);
// The position within its batch of the first sample of a shard. With `shard` equal to `shards`, the end
// of the batch.
std::int64_t begin_of_shard(std::int64_t batch_samples, int shard, int shards);

// The samples of one shard.
struct ShardSlice {
  std::int64_t first_sample = 0;    // position in the global batch
  std::int64_t samples = 0;         // may be 0
  std::span<const float> features;  // a row of words for each sample
  std::span<const float> targets;
};

// What next() returns: the shards of this replica.
struct Batch {
  std::int64_t epoch = 0;
  std::int64_t index = 0;    // in the epoch; of several together, of the first one
  std::int64_t samples = 0;  // of the whole global batch
  std::vector<ShardSlice> shards;
  const SampleLayouts* layouts = nullptr;  // of the data set, which outlives the batch; null: plain
  bool is_on_device = false;               // the views lie in the memory of the device

  bool has_weights() const { return layouts != nullptr && layouts->has_weights; }
  // Null for rows of one f32 array.
  const RowLayout* input_layout() const {
    return layouts == nullptr || layouts->inputs.is_plain() ? nullptr : &layouts->inputs;
  }
  const RowLayout* target_layout() const {
    return layouts == nullptr || layouts->targets.is_plain() ? nullptr : &layouts->targets;
  }
};

// The samples of shards [first_shard, end_shard) of one batch, loaded by the calling thread out of
// turn, as a check of gradients does. They have the same bits as those of a BatchLoader.
class LoadedShards {
 public:
  LoadedShards(const Dataset& dataset, std::uint64_t seed, int total_shards, int first_shard, int end_shard,
               std::int64_t epoch, std::int64_t batch_index, std::int64_t together = 1);
  LoadedShards(LoadedShards&&) = default;
  LoadedShards& operator=(LoadedShards&&) = default;

  // Contains only these shards. Its views are valid as long as this object, even after it was moved.
  const Batch& batch() const { return batch_; }

 private:
  std::vector<float> features_;
  std::vector<float> targets_;
  Batch batch_;
};

// How samples get to a device. If all members are empty, samples are loaded into the memory of the
// host.
struct SampleWays {
  // Samples that lie on the device. The loader then only finds out which ones a batch has.
  ResidentSamples* resident = nullptr;  // must outlive the loader
  SampleFeeds feeds{};                  // from a pinned source; only with prefetch()
  // If both are empty: makes feeds of rows into which batches are loaded ahead, or returns none.
  std::function<SampleFeeds(const HostRows&)> stage{};
  // For PrefetchOptions::automatic: how many threads may load, and who is told, on the loading thread, how many do.
  int most_threads = 1;
  std::function<void(int threads)> chose_threads{};
};

class BatchLoader {
 public:
  // Begins with batch `batch_index` of `epoch` and ends before `end_epoch`; an index equal to the
  // number of batches means the first batch of the next epoch. This replica has the shards
  // [first_shard, end_shard) of `total_shards`. With `together`, so many consecutive batches of the data set are one
  // that is cut into shards, fewer at the end of an epoch. Throws Error{invalid_argument} for a data set without a
  // batch size; asserts the rest.
  BatchLoader(Dataset dataset, std::uint64_t seed, int total_shards, int first_shard, int end_shard, std::int64_t epoch,
              std::int64_t batch_index, std::int64_t end_epoch, SampleWays ways = {}, std::int64_t together = 1);
  // Blocks until each loading thread has finished its current sample.
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // Returns the next batch, whose views are valid until the following call; nullopt after the last
  // batch. Blocks while the batch is loaded, without a deadline: the watchdog limits how long user
  // functions may take. An exception from loading is rethrown when its batch is due, and no batch
  // follows it.
  std::optional<Batch> next();

 private:
  // How many batches are found ahead if only their positions are needed: they take little memory, and
  // waking a thread takes longer than queueing a step on a device.
  static constexpr std::size_t kPlacesOfPositions = 16;

  struct Cursor {
    std::int64_t epoch;
    std::int64_t index;
  };

  struct LoadedBatch {
    Cursor cursor{};
    std::vector<float> features;  // of the samples of this replica, one after another
    std::vector<float> targets;
    std::vector<std::int64_t> positions;  // in the source, or numbers of staged rows
    std::optional<StagedBatches::Room> room;
  };

  bool is_at_end(const Cursor& cursor) const { return cursor.epoch >= end_epoch_ || dataset_.batches() == 0; }
  // The batch after this one, perhaps in the next epoch.
  Cursor following(const Cursor& cursor) const;
  // Returns false if it was stopped before the end.
  bool load(const Cursor& cursor, LoadedBatch& batch, const std::stop_token& stop) const;
  Batch view(const LoadedBatch& batch) const;
  Batch view(const LoadedBatch& batch, std::span<const float> features, std::span<const float> targets) const;

  void stage(SampleWays& ways);
  bool is_fed() const { return feeds_.are_there(); }
  bool needs_positions_only() const { return resident_ != nullptr || (is_fed() && staged_ == nullptr); }
  std::optional<Batch> load_in_this_thread();
  // Blocks until a batch is loaded and returns the oldest; null after the last one.
  std::unique_ptr<LoadedBatch> wait_for_loaded();
  void give_back(std::unique_ptr<LoadedBatch> batch);
  bool is_any_loaded();
  std::optional<Batch> next_fed();
  std::optional<Batch> next_loaded();
  void send_next();
  void run(const std::stop_token& stop);
  void load_all(const std::stop_token& stop);
  // load(), and where threads are chosen by measuring, what it tells of them.
  bool load_measured(const Cursor& cursor, LoadedBatch& batch, const std::stop_token& stop);
  // How long the caller needed since it got its last batch.
  void note_step();

  const Dataset dataset_;
  const std::uint64_t seed_;
  const int total_shards_;
  const int first_shard_;
  const int end_shard_;
  const std::int64_t end_epoch_;
  const std::int64_t together_;
  std::size_t wakes_at_ = 1;  // so many free buffers wake the loading thread
  ResidentSamples* const resident_;
  std::unique_ptr<StagedBatches> staged_;  // what feeds_ read, unless they read a source
  SampleFeeds feeds_;                      // used by the thread of the caller only

  Cursor cursor_;                         // the batch to load next; used by the loading thread if there is one
  std::unique_ptr<LoadedBatch> current_;  // in use by the caller
  std::unique_ptr<LoadedBatch> sent_;     // on the way to the device

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_.
  std::deque<std::unique_ptr<LoadedBatch>> free_;
  std::deque<std::unique_ptr<LoadedBatch>> loaded_;
  bool is_finished_ = false;  // the loading thread will add no more
  std::exception_ptr failure_;
  std::optional<ThreadChoice> choice_;  // empty unless threads are chosen by measuring

  std::optional<std::chrono::steady_clock::time_point> handed_out_;  // the batch in use; used by the caller
  std::function<void(int)> chose_threads_;                           // used by the loading thread
  std::unique_ptr<WorkerPool> pool_;  // helps the loading thread; null if that loads alone

  std::jthread thread_;  // last, so that it is stopped and joined before the rest is destroyed
};

}  // namespace holdfast
