#pragma once

// What callbacks see in any call of a Trainer. docs/decisions/callbacks.md

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/train/callback.h"
#include "train/step/training.h"

namespace holdfast {

class CallContext : public TrainingContext {
 public:
  // Belongs to call number `call` (from 0) of the Trainer.
  CallContext(Training& training, std::size_t call) : training_(training), call_(call) {}

  int rank() const override { return training_.context->rank; }
  int replicas() const override { return training_.context->size; }
  int generation() const override { return training_.context->generation; }
  std::string run_directory() const override { return training_.context->trainer_directory(); }
  bool writes_files() const override { return training_.context->writes_files; }
  bool writes_savepoints() const override { return training_.keeps_savepoints(); }
  std::vector<std::string> savepoint_copies() const override { return training_.context->copies_of_trainer(); }
  int saving_threads() const override { return training_.context->saving_threads; }
  FileSystem& file_system() const override { return training_.files; }
  std::int64_t call() const override { return static_cast<std::int64_t>(call_); }
  int trainer() const override { return std::max(training_.context->trainer, 0); }
  std::int64_t step() const override { return training_.state.step; }
  std::int64_t epoch() const override { return training_.state.epoch; }
  std::int64_t epochs() const override { return record().epochs; }
  std::int64_t batch_in_epoch() const override { return training_.state.batch; }
  std::int64_t samples_in_epoch() const override { return record().epoch_samples; }
  const std::vector<Logs>& history() const override { return record().history; }
  std::vector<std::vector<Logs>> earlier_histories() const override;
  std::optional<Best> best_of(const std::string& log) const override {
    return training_.trainable.best_of(log.starts_with("val_") ? log.substr(4) : log);
  }
  std::optional<float> learning_rate() const override {
    const std::optional<float> set = training_.state.learning_rate;
    return set ? set : training_.trainable.learning_rate(training_.state.step + 1);
  }
  std::vector<WeightArray> weights() const override;
  std::string graph() const override { return present_graph(training_.state); }

 protected:
  // Looked up each time: the state may have come from another replica meanwhile.
  const CallRecord& record() const { return training_.state.calls.at(call_); }

  Training& training_;
  const std::size_t call_;
};

}  // namespace holdfast
