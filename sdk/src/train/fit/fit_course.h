#pragma once

// A fit() from its first step to its end, step by step: fit() goes through it at once, and a program's own loop over
// Trainer::steps() goes through it as it likes.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "holdfast/data/dataset.h"
#include "holdfast/train/trainer.h"
#include "train/fit/epoch_plan.h"
#include "train/fit/fit_context.h"
#include "train/fit/session.h"

namespace holdfast {

class FitCourse {
 public:
  // Joins the other replicas, and tells callbacks of the beginning unless the call is over already. The session must
  // outlive it. Throws as Trainer::fit() does.
  FitCourse(Trainer::Session& session, const Dataset& data, const FitOptions& options);
  // A course that has not come to its end leaves the call open.
  ~FitCourse();
  FitCourse(const FitCourse&) = delete;
  FitCourse& operator=(const FitCourse&) = delete;

  // Makes what is left of the last step, and the next one up to its callbacks. Returns false at the end of fit(), when
  // its savepoints are durable.
  bool advance();

  // These two are valid after a step.
  TrainingContext& context() { return *context_; }
  const Logs& logs() const { return logs_; }
  // Valid after the end.
  FitResult result() const;

 private:
  void begin();
  void go_on(bool gives_up_state);
  void open_data();
  void settle_batch();
  std::optional<Batch> next_batch();
  void note_step(const Batch& batch, const StepOutcome& outcome);
  void finish_step();
  void end();
  void leave();
  void fail(const std::string& sentence);
  bool is_over() const;
  bool is_epoch_done() const;

  // What fit() does with each step, at the beginning and end of each epoch, and at its own (fit.cpp).
  void begin_fit();
  void begin_epoch();
  void begin_step();
  StepRunner::TrainOptions step_options(const Batch& batch) const;
  int shards_together() const;
  // The rate that a step uses in place of the optimizer's own.
  std::optional<float> rate_of_step() const;
  void count_step(const Batch& batch, const StepOutcome& outcome);
  Logs end_step();
  Logs validate();
  void end_epoch();
  void end_fit();
  void close_fit();
  void restore_kept_weights();
  void restore_callbacks_of_fit();
  Logs means_of_epoch() const;
  CallRecord& record() const { return session_.record_of(call_); }

  Trainer::Session& session_;
  Training& training_;
  const FitOptions options_;
  const EpochPlan plan_;
  CallRecord begun_;
  std::size_t call_ = 0;
  std::optional<FitContext> context_;  // while the call is under way
  std::unique_ptr<BatchLoader> loader_;
  Logs logs_;
  bool is_step_open_ = false;  // its callbacks were called, and what comes after them was not done
  bool has_ended_ = false;     // or failed
};

}  // namespace holdfast
