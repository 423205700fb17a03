#include "holdfast/train/learning_rate_scheduler.h"

#include <fmt/format.h>

#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"

namespace holdfast {

LearningRateScheduler::LearningRateScheduler(Schedule schedule, LearningRateSchedulerOptions options)
    : schedule_(std::move(schedule)), options_(options) {
  if (!schedule_) throw Error(ErrorCode::invalid_argument, "LearningRateScheduler needs a function");
}

// Each rank calls the function for itself, and all must set the same rate. The rate of a schedule would be lost, so
// set_learning_rate() refuses such an optimizer. See docs/decisions/learning-rates.md.
void LearningRateScheduler::on_epoch_begin(TrainingContext& context) {
  const std::optional<float> rate = context.learning_rate();
  if (!rate) {
    throw Error(ErrorCode::unsupported,
                "LearningRateScheduler needs an optimizer with a learning rate; override its learning_rate() and "
                "with_learning_rate(), or leave the callback out");
  }
  const float next = schedule_(context.epoch(), *rate);
  context.set_learning_rate(next);
  if (!options_.verbose || !context.is_primary()) return;
  log(LogLevel::info, fmt::format("epoch {}: the learning rate is {}", context.epoch(), next));
}

}  // namespace holdfast
