#pragma once

#include <optional>
#include <string>
#include <vector>

#include "holdfast/base/file_system.h"
#include "holdfast/train/callback.h"

namespace holdfast {

// A TrainingContext whose values the test sets: for tests of callbacks without a training.
class PlayedContext final : public TrainingContext {
 public:
  int rank() const override { return rank_number; }
  int replicas() const override { return 1; }
  int generation() const override { return generation_number; }
  std::string run_directory() const override { return directory; }
  int saving_threads() const override { return threads; }
  int trainer() const override { return trainer_number; }
  std::vector<std::vector<Logs>> earlier_histories() const override { return earlier; }
  std::int64_t step() const override { return step_number; }
  std::int64_t epoch() const override { return epoch_number; }
  std::int64_t epochs() const override { return 10; }
  std::int64_t batch_in_epoch() const override { return batch_number; }
  std::int64_t batches_per_epoch() const override { return 48; }
  std::int64_t samples_in_epoch() const override { return 100 * batch_number; }
  const std::vector<Logs>& history() const override { return past; }
  FileSystem& file_system() const override { return *files; }
  void stop_training() override { stopped = true; }
  void keep_weights() override { kept = epoch_number; }
  std::optional<std::int64_t> kept_epoch() const override { return kept; }
  void restore_kept_weights() override { restored = kept; }
  std::vector<WeightArray> weights() const override { return arrays; }
  std::string graph() const override { return graph_text; }
  std::optional<float> learning_rate() const override { return rate; }
  void set_learning_rate(float set) override { rate = set; }
  void begin_profile() override { profiled_from = step_number; }
  std::vector<ProfileSpan> end_profile() override { return spans; }
  void save(const std::string& path, const SaveOptions& options) override {
    saved.push_back(path);
    write(path);
    asked.push_back(options);
    if (options.when_durable) options.when_durable();
  }

  // Writes what stands for a savepoint.
  std::function<void(const std::string& path)> write = [](const std::string& path) {
    posix_file_system().create(path);
  };
  std::string directory;
  FileSystem* files = &posix_file_system();
  int rank_number = 0;
  int generation_number = 0;
  int trainer_number = 0;
  std::vector<std::vector<Logs>> earlier;  // of earlier calls of fit()
  int threads = 0;
  std::int64_t step_number = 0;
  std::int64_t epoch_number = 0;
  std::int64_t batch_number = 12;
  std::vector<Logs> past;
  bool stopped = false;
  std::optional<std::int64_t> kept;      // the epoch of keep_weights()
  std::optional<std::int64_t> restored;  // the same after restore_kept_weights()
  std::vector<WeightArray> arrays;
  std::string graph_text;
  std::optional<std::int64_t> profiled_from;  // the step of begin_profile()
  std::vector<ProfileSpan> spans;             // what end_profile() returns
  std::optional<float> rate;
  std::vector<std::string> saved;
  std::vector<SaveOptions> asked;  // one for each of `saved`
};

}  // namespace holdfast
