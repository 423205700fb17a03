// A cache changes no bit: it has the number of the stage before, passes on everything but load(), and is refused where
// samples differ from epoch to epoch. In memory, a sample is published by a flag after its words are written, so
// readers take no lock. See docs/decisions/caches.md.

#include "data/cache/cached_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "data/kept/folder_lock.h"
#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"

namespace holdfast {
namespace {

float* zeroed_words(std::int64_t samples, std::size_t words) {
  // calloc() of so much memory takes pages as they are written.
  void* const memory =
      std::calloc(static_cast<std::size_t>(samples) + 1, std::max<std::size_t>(1, words) * sizeof(float));
  if (memory == nullptr) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("cache() of {} samples of {} bytes does not fit into memory; use cache(\"FILE\")", samples,
                            words * sizeof(float)));
  }
  return static_cast<float*>(memory);
}

}  // namespace

CacheStage::CacheStage(std::shared_ptr<const Stage> before)
    : Stage(before->layouts(), before->size(), before->number()), before_(std::move(before)) {
  // A cache that kept what epoch 0 drew would turn augmentation off without a word.
  if (before_->is_same_in_all_epochs()) return;
  throw Error(
      ErrorCode::invalid_argument,
      "cache() stands after a stage whose samples may differ from epoch to epoch: shuffle(), mixup(), cutmix(), or a "
      "map() that may draw; put it before them");
}

MemoryCacheStage::MemoryCacheStage(std::shared_ptr<const Stage> before)
    : CacheStage(std::move(before)),
      words_(zeroed_words(size(), sample_words())),
      is_there_(static_cast<std::size_t>(size())) {}

void MemoryCacheStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  const auto index = static_cast<std::size_t>(position);
  const Sample kept = sample_in({words_.get() + index * sample_words(), sample_words()});
  // Pairs with the release below: a thread that sees the flag sees the words that were written before it.
  if (is_there_[index].load(std::memory_order_acquire)) {
    std::ranges::copy(kept.features, destination.features.begin());
    std::ranges::copy(kept.targets, destination.targets.begin());
    return;
  }
  // Loading runs in several threads at once; only the copy is guarded. Two threads may load one sample, with equal
  // bits.
  before().load(seed, epoch, position, destination);
  const std::lock_guard lock(mutex_);
  // Another thread was faster. Its words must not be written again, since readers take no lock.
  if (is_there_[index].load(std::memory_order_relaxed)) return;
  std::ranges::copy(destination.features, kept.features.begin());
  std::ranges::copy(destination.targets, kept.targets.begin());
  is_there_[index].store(true, std::memory_order_release);
}

FileCacheStage::FileCacheStage(std::shared_ptr<const Stage> stage, const std::string& path, int threads)
    : CacheStage(std::move(stage)), file_(open_file(path, threads)) {}

CacheFile FileCacheStage::open_file(const std::string& path, int threads) const {
  // One replica of a host loads the samples, and the others wait for its file.
  const std::unique_ptr<FolderLock> lock = lock_unless_there(posix_file_system(), path);
  return {posix_file_system(),
          path,
          {.text = text_of_samples(before()), .samples = size(), .sample_bytes = sample_words() * sizeof(float)},
          [this](std::int64_t position, std::span<std::byte> bytes) {
            // Runs on several threads at once, so each call has words of its own. Samples are those of epoch 0, which
            // stands for all.
            std::vector<float> words(sample_words());
            before().load(0, 0, position, sample_in(words));
            std::ranges::copy(std::as_bytes(std::span(words)), bytes.begin());
          },
          threads};
}

void FileCacheStage::load(std::uint64_t, std::int64_t, std::int64_t position, Sample destination) const {
  // In place: memory for a large sample would come from the system anew each time.
  file_.read(position, std::as_writable_bytes(destination.features), std::as_writable_bytes(destination.targets));
}

void FileCacheStage::load_run(std::uint64_t, std::int64_t, std::int64_t first, Sample rows) const {
  file_.read_run(first, std::as_writable_bytes(rows.features), std::as_writable_bytes(rows.targets));
}

Dataset Dataset::cache() const {
  check_is_open("cache");
  return Dataset(std::make_shared<MemoryCacheStage>(stage_));
}

Dataset Dataset::cache(const std::string& path, CacheOptions options) const {
  check_is_open("cache");
  if (options.threads < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("cache() needs one thread or more, not {}", options.threads));
  }
  return Dataset(std::make_shared<FileCacheStage>(stage_, path, options.threads));
}

}  // namespace holdfast
