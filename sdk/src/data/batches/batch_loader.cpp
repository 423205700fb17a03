// Loads the shards of a replica, batch after batch, in the calling thread or ahead of it. There are
// four ways to a device: loaded into host memory, sent from staged rows, sent from a pinned source, or
// gathered from samples that lie on the device. In the last two only positions are found ahead. Every
// stage has random access, so no way and no number of threads changes a bit; several threads load one
// batch, not a batch each, so batches need no order among themselves. See docs/decisions/loading.md.

#include "data/batches/batch_loader.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/first_failure.h"
#include "data/batches/gathered_rows.h"
#include "data/stages/stage.h"
#include "holdfast/base/error.h"
#include "holdfast/base/threads.h"

namespace holdfast {

std::int64_t samples_of_batch(const Dataset& dataset, std::int64_t index, std::int64_t together) {
  // With drop_remainder, samples after the last batch belong to none.
  const std::int64_t end = std::min(dataset.size(), dataset.batches() * dataset.batch_size());
  // A batch may be asked for that is larger than any product.
  const std::int64_t batch = std::min(dataset.batch_size(), std::max<std::int64_t>(dataset.size(), 1));
  return std::min(together * batch, end - index * dataset.batch_size());
}

std::int64_t begin_of_shard(std::int64_t batch_samples, int shard, int shards) {
  // Shards differ by one sample at most. The border is a function of the batch alone, never of the replicas.
  return batch_samples * shard / shards;
}

namespace {

// The shards [first, end) of `total` of one batch.
struct Part {
  int total = 1;
  int first = 0;
  int end = 1;
  std::int64_t epoch = 0;
  std::int64_t index = 0;
  std::int64_t together = 1;
};

std::int64_t samples_of(const Dataset& dataset, const Part& part) {
  return samples_of_batch(dataset, part.index, part.together);
}

std::int64_t begin_of(const Part& part, std::int64_t samples, int shard) {
  return begin_of_shard(samples, shard, part.total);
}

// The positions that the samples of a part have in their epoch. They are consecutive.
struct Positions {
  std::int64_t first = 0;
  std::size_t count = 0;
};

Positions positions_of(const Dataset& dataset, const Part& part) {
  const std::int64_t samples = samples_of(dataset, part);
  const std::int64_t begin = begin_of(part, samples, part.first);
  return {.first = part.index * dataset.batch_size() + begin,
          .count = static_cast<std::size_t>(begin_of(part, samples, part.end) - begin)};
}

// Samples on a device or in a pinned source are found by their number there. No user function runs for it.
std::vector<std::int64_t> source_positions_of(const Dataset& dataset, std::uint64_t seed, const Part& part) {
  const Positions in_epoch = positions_of(dataset, part);
  std::vector<std::int64_t> positions(in_epoch.count);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    positions[i] =
        dataset.last_stage()->source_position(seed, part.epoch, in_epoch.first + static_cast<std::int64_t>(i));
  }
  return positions;
}

struct LoadedRows {
  std::span<float> features;
  std::span<float> targets;
};

LoadedRows resized(const Dataset& dataset, const Part& part, std::vector<float>& features,
                   std::vector<float>& targets) {
  const std::size_t count = positions_of(dataset, part).count;
  // A buffer is used again, so it only allocates until it has held the largest batch.
  features.resize(count * dataset.last_stage()->feature_words());
  targets.resize(count * dataset.last_stage()->target_words());
  return {features, targets};
}

// Where the samples of a part are loaded to; the arrays have room for all of them.
struct Destination {
  const Dataset& dataset;
  const std::uint64_t seed;
  const Part& part;
  const LoadedRows arrays;
  const bool reads_files = dataset.last_stage()->reads_files();

  std::size_t feature_words() const { return dataset.last_stage()->feature_words(); }
  std::size_t target_words() const { return dataset.last_stage()->target_words(); }
  // The rows of the samples [begin, end) of the part.
  LoadedRows rows(std::size_t begin, std::size_t end) const {
    return {arrays.features.subspan(begin * feature_words(), (end - begin) * feature_words()),
            arrays.targets.subspan(begin * target_words(), (end - begin) * target_words())};
  }
};

// How many samples ahead a source is told of: enough that a disk has something to do meanwhile.
constexpr std::int64_t kExpectedAhead = 16;

void load_sample(const Destination& to, std::size_t index) {
  const LoadedRows row = to.rows(index, index + 1);
  const std::int64_t position = positions_of(to.dataset, to.part).first + static_cast<std::int64_t>(index);
  // Perhaps a sample of another replica, which costs nothing: they share what the system has read.
  const std::int64_t later = position + kExpectedAhead;
  if (to.reads_files && later < to.dataset.size()) to.dataset.last_stage()->expect(to.seed, to.part.epoch, later);
  to.dataset.load(to.seed, to.part.epoch, position, {.features = row.features, .targets = row.targets});
}

// Loads the samples [begin, end) of a part. Returns false if it was stopped before the end.
bool load_samples(const Destination& to, std::size_t begin, std::size_t end, const std::stop_token& stop) {
  const auto together = static_cast<std::size_t>(to.dataset.last_stage()->samples_of_a_run());
  while (begin < end) {
    if (stop.stop_requested()) return false;
    if (together == 0) {
      load_sample(to, begin++);
      continue;
    }
    const std::size_t next = std::min(end, begin + together);
    const LoadedRows rows = to.rows(begin, next);
    const std::int64_t first = positions_of(to.dataset, to.part).first + static_cast<std::int64_t>(begin);
    to.dataset.last_stage()->load_run(to.seed, to.part.epoch, first,
                                      {.features = rows.features, .targets = rows.targets});
    begin = next;
  }
  return true;
}

// Copies the samples [begin, end) of a part from memory.
void gather_samples(const Destination& to, const GatheredRows& source, std::size_t begin, std::size_t end) {
  const LoadedRows rows = to.rows(begin, end);
  const std::int64_t first = positions_of(to.dataset, to.part).first + static_cast<std::int64_t>(begin);
  source.gather(to.seed, to.part.epoch, first, rows.features, rows.targets);
}

// Loads all samples in this thread. Returns false if it was stopped before the end.
bool load_part(const Destination& to, const std::stop_token& stop) {
  const std::size_t count = positions_of(to.dataset, to.part).count;
  const GatheredRows source(*to.dataset.last_stage());
  if (source.are_there()) {
    gather_samples(to, source, 0, count);
    return true;
  }
  return load_samples(to, 0, count, stop);
}

// Loads all samples with the threads of the pool. Threads begin pieces in order, so after a failure no
// piece needs to begin: every earlier one has begun already.
bool load_part(const Destination& to, const std::stop_token& stop, WorkerPool& pool) {
  constexpr std::size_t kPiecesPerThread = 8;  // more than one, since some samples take longer than others
  const std::size_t count = positions_of(to.dataset, to.part).count;
  // The pieces depend on the number of threads, and the samples do not: each one is a function of its position.
  const std::size_t pieces = std::min(count, kPiecesPerThread * static_cast<std::size_t>(pool.size()));
  const GatheredRows source(*to.dataset.last_stage());
  FirstFailure failure;
  pool.run(static_cast<int>(pieces), [&](int, int index) {
    const auto piece = static_cast<std::size_t>(index);
    const std::size_t sample = piece * count / pieces;
    const std::size_t end = (piece + 1) * count / pieces;
    if (failure.is_before(sample)) return;
    try {
      if (source.are_there()) return gather_samples(to, source, sample, end);
      load_samples(to, sample, end, stop);
    } catch (...) {
      failure.note(sample);
    }
  });
  failure.rethrow_if_there();
  return !stop.stop_requested();
}

Batch view_of(const Dataset& dataset, const Part& part, std::span<const float> features,
              std::span<const float> targets) {
  const std::size_t feature_words = dataset.last_stage()->feature_words();
  const std::size_t target_words = dataset.last_stage()->target_words();
  Batch result{.epoch = part.epoch,
               .index = part.index,
               .samples = samples_of(dataset, part),
               .shards = {},
               .layouts = &dataset.last_stage()->layouts()};
  // The arrays begin with the first sample of this replica, and not with that of the batch.
  const std::int64_t loaded_begin = begin_of(part, result.samples, part.first);
  for (int shard = part.first; shard < part.end; ++shard) {
    const std::int64_t begin = begin_of(part, result.samples, shard);
    const std::int64_t samples = begin_of(part, result.samples, shard + 1) - begin;
    const auto offset = static_cast<std::size_t>(begin - loaded_begin);
    const auto count = static_cast<std::size_t>(samples);
    result.shards.push_back({.first_sample = begin,
                             .samples = samples,
                             .features = features.subspan(offset * feature_words, count * feature_words),
                             .targets = targets.subspan(offset * target_words, count * target_words)});
  }
  return result;
}

}  // namespace

LoadedShards::LoadedShards(const Dataset& dataset, std::uint64_t seed, int total_shards, int first_shard, int end_shard,
                           std::int64_t epoch, std::int64_t batch_index, std::int64_t together) {
  HOLDFAST_ASSERT(0 <= first_shard && first_shard <= end_shard && end_shard <= total_shards && total_shards > 0);
  HOLDFAST_ASSERT(epoch >= 0 && batch_index >= 0 && batch_index < dataset.batches());
  const Part part{.total = total_shards,
                  .first = first_shard,
                  .end = end_shard,
                  .epoch = epoch,
                  .index = batch_index,
                  .together = together};
  load_part({dataset, seed, part, resized(dataset, part, features_, targets_)}, std::stop_token());
  batch_ = view_of(dataset, part, features_, targets_);
}

BatchLoader::BatchLoader(Dataset dataset, std::uint64_t seed, int total_shards, int first_shard, int end_shard,
                         std::int64_t epoch, std::int64_t batch_index, std::int64_t end_epoch, SampleWays ways,
                         std::int64_t together)
    : dataset_(std::move(dataset)),
      seed_(seed),
      total_shards_(total_shards),
      first_shard_(first_shard),
      end_shard_(end_shard),
      end_epoch_(end_epoch),
      together_(together),
      resident_(ways.resident),
      feeds_(std::move(ways.feeds)),
      cursor_{.epoch = epoch, .index = batch_index},
      current_(std::make_unique<LoadedBatch>()) {
  if (dataset_.batch_size() == 0) {
    throw Error(ErrorCode::invalid_argument,
                "cannot load batches from a data set without a batch size; end it with batch(samples)");
  }
  HOLDFAST_ASSERT(0 <= first_shard && first_shard <= end_shard && end_shard <= total_shards && total_shards > 0 &&
                  together > 0);
  HOLDFAST_ASSERT(epoch >= 0 && batch_index >= 0 && batch_index <= dataset_.batches());
  HOLDFAST_ASSERT(resident_ == nullptr || resident_->are_source_of(dataset_));
  HOLDFAST_ASSERT(!is_fed() || dataset_.prefetch_depth() > 0);
  // A run that stopped after the last batch of an epoch resumes here. following() never makes such a cursor.
  if (batch_index == dataset_.batches()) cursor_ = {.epoch = epoch + 1, .index = 0};
  if (dataset_.prefetch_depth() == 0) return;
  // The other two ways send from memory that holds all samples, so they need no rows of their own.
  if (resident_ == nullptr && !is_fed() && ways.stage) stage(ways);
  // With feeds, one more batch is on its way to the device.
  std::size_t count = static_cast<std::size_t>(dataset_.prefetch_depth()) + (is_fed() ? 1 : 0);
  if (needs_positions_only()) count = std::max(count, kPlacesOfPositions);
  // Waking a thread takes the step as long as finding some positions, or loading a small batch. So it is woken once for
  // several steps, while most batches are still ahead. Positions are found so quickly that half of them are enough.
  wakes_at_ = std::max<std::size_t>(1, needs_positions_only() ? count / 2 : count / 4);
  for (std::size_t i = 0; i < count; ++i) free_.push_back(std::make_unique<LoadedBatch>());
  // Each buffer keeps its rows for its whole life. So a batch that is being loaded never touches rows on their way.
  if (staged_ != nullptr) {
    current_->room = staged_->room(0);
    for (std::size_t i = 0; i < free_.size(); ++i) free_[i]->room = staged_->room(1 + i);
  }
  // Finding positions takes less time than handing them to a thread.
  if (dataset_.prefetch_threads() > 1 && !needs_positions_only()) {
    pool_ = std::make_unique<WorkerPool>(dataset_.prefetch_threads());
  }
  if (dataset_.prefetch_threads() == PrefetchOptions::automatic && !needs_positions_only()) {
    choice_.emplace(ways.most_threads);
    chose_threads_ = std::move(ways.chose_threads);
  }
  // Last, because it reads every other member.
  thread_ = start_thread<std::jthread>("the thread that prepares batches",
                                       [this](const std::stop_token& stop) { run(stop); });
}

BatchLoader::~BatchLoader() = default;

// Makes room for the batches that are loaded ahead, for one on its way to the device and for one in
// use.
void BatchLoader::stage(SampleWays& ways) {
  // The last batch may be smaller, and shards differ by one sample. This is the most that a batch of this replica has.
  const std::int64_t most = std::min(together_ * std::min(dataset_.batch_size(), dataset_.size()), dataset_.size());
  const std::int64_t own_shards = end_shard_ - first_shard_;
  const std::int64_t samples = (most * own_shards + total_shards_ - 1) / total_shards_;
  if (samples == 0) return;
  // free_ and current_ have as many buffers together: one more than the depth with feeds, and one in use.
  const auto batches = static_cast<std::size_t>(dataset_.prefetch_depth() + 2);
  staged_ = std::make_unique<StagedBatches>(dataset_, static_cast<std::size_t>(samples), batches);
  feeds_ = ways.stage(staged_->rows());
  if (is_fed()) return;
  // The memory must be unpinned before it is freed.
  feeds_ = {};
  staged_.reset();
}

BatchLoader::Cursor BatchLoader::following(const Cursor& cursor) const {
  const bool is_last = cursor.index + together_ >= dataset_.batches();
  return is_last ? Cursor{.epoch = cursor.epoch + 1, .index = 0}
                 : Cursor{.epoch = cursor.epoch, .index = cursor.index + together_};
}

bool BatchLoader::load(const Cursor& cursor, LoadedBatch& batch, const std::stop_token& stop) const {
  batch.cursor = cursor;
  const Part part{.total = total_shards_,
                  .first = first_shard_,
                  .end = end_shard_,
                  .epoch = cursor.epoch,
                  .index = cursor.index,
                  .together = together_};
  if (needs_positions_only()) {
    batch.positions = source_positions_of(dataset_, seed_, part);
    return true;
  }
  LoadedRows arrays;
  if (batch.room) {
    batch.positions.resize(positions_of(dataset_, part).count);
    // The feed reads by position. For staged rows, that is the number of the row and not that of the sample.
    std::iota(batch.positions.begin(), batch.positions.end(), batch.room->first_row);
    arrays = {batch.room->features, batch.room->targets};
  } else {
    arrays = resized(dataset_, part, batch.features, batch.targets);
  }
  const Destination to{dataset_, seed_, part, arrays};
  return pool_ == nullptr ? load_part(to, stop) : load_part(to, stop, *pool_);
}

Batch BatchLoader::view(const LoadedBatch& batch, std::span<const float> features,
                        std::span<const float> targets) const {
  const Part part{.total = total_shards_,
                  .first = first_shard_,
                  .end = end_shard_,
                  .epoch = batch.cursor.epoch,
                  .index = batch.cursor.index,
                  .together = together_};
  Batch result = view_of(dataset_, part, features, targets);
  // Otherwise the step would send the samples once more.
  result.is_on_device = needs_positions_only() || is_fed();
  return result;
}

Batch BatchLoader::view(const LoadedBatch& batch) const {
  if (resident_ == nullptr) return view(batch, batch.features, batch.targets);
  // In the caller's thread: the gather is queued on the device in the order of the steps.
  const ResidentSamples::Views samples = resident_->take(batch.positions);
  return view(batch, samples.features, samples.targets);
}

std::optional<Batch> BatchLoader::next() {
  if (!thread_.joinable()) return load_in_this_thread();
  note_step();
  std::optional<Batch> batch = is_fed() ? next_fed() : next_loaded();
  if (batch) handed_out_ = std::chrono::steady_clock::now();
  return batch;
}

std::optional<Batch> BatchLoader::next_loaded() {
  give_back(std::move(current_));
  current_ = wait_for_loaded();
  if (current_ == nullptr) return std::nullopt;
  return view(*current_);
}

void BatchLoader::note_step() {
  if (!handed_out_) return;
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  if (choice_) choice_->note_step(now - *handed_out_);
}

void BatchLoader::give_back(std::unique_ptr<LoadedBatch> batch) {
  if (batch == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(batch));
    // The thread may sleep on although a buffer is free. It still has batches ahead, and is woken before they run out.
    if (free_.size() < wakes_at_) return;
  }
  // Without the lock, which the thread takes first.
  changed_.notify_all();
}

std::unique_ptr<BatchLoader::LoadedBatch> BatchLoader::wait_for_loaded() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !loaded_.empty() || is_finished_; });
  if (!loaded_.empty()) {
    std::unique_ptr<LoadedBatch> batch = std::move(loaded_.front());
    loaded_.pop_front();
    return batch;
  }
  // Only after all loaded batches are used: the failure belongs to the batch that comes after them.
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  return nullptr;
}

bool BatchLoader::is_any_loaded() {
  const std::lock_guard lock(mutex_);
  return !loaded_.empty();
}

void BatchLoader::send_next() {
  // The buffer stays out of free_ until it was used. The device may read its rows until then.
  sent_ = wait_for_loaded();
  if (sent_ == nullptr) return;
  feeds_.features->begin(sent_->positions);
  feeds_.targets->begin(sent_->positions);
}

// Starts to send the next batch, if it is loaded, before it waits for this one. So the next one travels
// while this one is computed, and the two transfers follow each other without a pause.
std::optional<Batch> BatchLoader::next_fed() {
  give_back(std::move(current_));
  if (sent_ == nullptr) send_next();
  if (sent_ == nullptr) return std::nullopt;
  current_ = std::move(sent_);
  if (is_any_loaded()) send_next();
  const std::span<const float> features = feeds_.features->take();
  const std::span<const float> targets = feeds_.targets->take();
  return view(*current_, features, targets);
}

std::optional<Batch> BatchLoader::load_in_this_thread() {
  if (is_at_end(cursor_)) return std::nullopt;
  load(cursor_, *current_, std::stop_token());
  cursor_ = following(cursor_);
  return view(*current_);
}

void BatchLoader::run(const std::stop_token& stop) {
  // An exception that left the thread would end the process. next() throws it where the program can see it.
  std::exception_ptr failure;
  try {
    load_all(stop);
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  failure_ = std::move(failure);
  is_finished_ = true;
  changed_.notify_all();
}

// Between two batches the pool is idle, so another one may take its place.
bool BatchLoader::load_measured(const Cursor& cursor, LoadedBatch& batch, const std::stop_token& stop) {
  const auto begin = std::chrono::steady_clock::now();
  if (!load(cursor, batch, stop)) return false;
  const auto end = std::chrono::steady_clock::now();
  std::optional<int> threads;
  {
    const std::lock_guard lock(mutex_);
    if (!choice_) return true;
    choice_->note_load(end - begin);
    threads = choice_->next();
  }
  if (!threads) return true;
  pool_ = *threads > 1 ? std::make_unique<WorkerPool>(*threads) : nullptr;
  if (chose_threads_) chose_threads_(*threads);
  return true;
}

void BatchLoader::load_all(const std::stop_token& stop) {
  for (; !is_at_end(cursor_); cursor_ = following(cursor_)) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [&] { return !free_.empty(); })) return;
    std::unique_ptr<LoadedBatch> batch = std::move(free_.front());
    free_.pop_front();
    lock.unlock();

    // Without the lock, since a sample may take long and next() must be able to fetch the batches before it.
    if (!load_measured(cursor_, *batch, stop)) return;

    lock.lock();
    loaded_.push_back(std::move(batch));
    changed_.notify_all();
  }
}

}  // namespace holdfast
