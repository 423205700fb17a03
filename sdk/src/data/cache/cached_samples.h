#pragma once

// The stage of Dataset::cache(): samples of the stage before, kept in memory or in a file. It has the number of that
// stage, so that later stages draw as they do without it.

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "data/kept/cache_file.h"
#include "data/stages/stage.h"

namespace holdfast {

// What both kinds share: they pass everything on but load().
class CacheStage : public Stage {
 public:
  const Stage* source() const override { return before().source(); }
  SampleOrigin origin(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const override {
    return before().origin(seed, epoch, position);
  }
  std::vector<const Stage*> parents() const override { return {before_.get()}; }
  void load_targets(std::uint64_t seed, std::int64_t epoch, std::int64_t position,
                    std::span<float> targets) const override {
    before().load_targets(seed, epoch, position, targets);
  }
  StageKind kind() const override { return StageKind::cache; }
  void describe(nlohmann::ordered_json& stages) const override { before().describe(stages); }

 protected:
  // Throws Error{invalid_argument} if samples differ from epoch to epoch.
  explicit CacheStage(std::shared_ptr<const Stage> before);

  const Stage& before() const { return *before_; }
  // The words of one sample, features and then targets.
  std::size_t sample_words() const { return feature_words() + target_words(); }
  Sample sample_in(std::span<float> words) const {
    return {.features = words.first(feature_words()), .targets = words.subspan(feature_words())};
  }

 private:
  std::shared_ptr<const Stage> before_;
};

// In memory that is taken page by page, as samples are loaded.
class MemoryCacheStage : public CacheStage {
 public:
  // Throws Error{out_of_memory} if there is no room in the address space.
  explicit MemoryCacheStage(std::shared_ptr<const Stage> before);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;

 private:
  struct FreeMemory {
    void operator()(float* words) const { std::free(words); }
  };

  const std::unique_ptr<float[], FreeMemory> words_;  // [size, sample_words()]
  // Whether the sample is there. Once it is, its words are never written again.
  mutable std::vector<std::atomic<bool>> is_there_;
  mutable std::mutex mutex_;  // held while words are written
};

// In a file, which is written by the constructor if it does not exist.
class FileCacheStage : public CacheStage {
 public:
  FileCacheStage(std::shared_ptr<const Stage> before, const std::string& path, int threads);

  void load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const override;
  void load_run(std::uint64_t seed, std::int64_t epoch, std::int64_t first, Sample rows) const override;
  std::int64_t samples_of_a_run() const override { return file_.samples_of_a_run(); }
  bool reads_files() const override { return true; }
  void expect(std::uint64_t, std::int64_t, std::int64_t position) const override { file_.expect(position); }

 private:
  CacheFile open_file(const std::string& path, int threads) const;

  CacheFile file_;
};

}  // namespace holdfast
