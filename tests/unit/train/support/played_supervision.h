#pragma once

// Supervisors for trainings in tests, instead of a watchdog.

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "train/context/replica_context.h"

namespace holdfast {

// Collects the lines of the journal.
class Journal final : public NoSupervision {
 public:
  explicit Journal(bool is_stop_requested = false) : is_stop_requested_(is_stop_requested) {}

  StepRequests requests() const override { return {.stop = is_stop_requested_}; }
  void report_event(const std::string& event, const std::string& detail) override {
    const std::lock_guard lock(mutex_);
    details_[event].push_back(detail);
  }

  std::vector<std::string> details(const std::string& event) {
    const std::lock_guard lock(mutex_);
    return details_[event];
  }

 private:
  const bool is_stop_requested_;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::string>> details_;  // guarded by mutex_
};

// Asks for a savepoint while a given step is computed.
class AskedAt final : public NoSupervision {
 public:
  explicit AskedAt(std::int64_t step) : step_(step) {}

  void enter(TrainingPhase phase, std::int64_t step) override {
    if (phase == TrainingPhase::computing && step == step_) is_asked_ = true;
  }
  StepRequests requests() const override { return {.savepoint = is_asked_ && !is_begun_}; }
  int begin_requested_savepoint() override {
    is_begun_ = true;
    return 7;
  }
  void report_savepoint(int number, const std::string& path, std::int64_t step) override {
    reports_.push_back({number, path, step});
  }
  void report_no_savepoint(int number, const std::string& why) override { reports_.push_back({number, why, -1}); }
  void count_samples(std::int64_t samples) override { samples_ += samples; }

  struct Report {
    int number = 0;
    std::string text{};  // the path, or why no savepoint was made
    std::int64_t step = -1;
  };
  // To be read when training is over.
  const std::vector<Report>& reports() const { return reports_; }
  std::int64_t samples() const { return samples_; }

 private:
  const std::int64_t step_;
  std::atomic<bool> is_asked_ = false;
  std::atomic<bool> is_begun_ = false;
  std::atomic<std::int64_t> samples_ = 0;
  std::vector<Report>
      reports_;  // written by rank 0's writer thread, or by its training thread while the writer is idle
};

}  // namespace holdfast
