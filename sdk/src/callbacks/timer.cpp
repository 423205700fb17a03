// Each replica has a clock of its own, so none of them may decide alone that fit() ends: it asks, and all learn of it
// with the sums of a step. See docs/decisions/training-loop.md

#include "holdfast/train/timer.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/log.h"
#include "holdfast/base/whole_file.h"

namespace holdfast {

Timer::Timer(TimerOptions options) : options_(std::move(options)) {
  if (!options_.now) throw Error(ErrorCode::invalid_argument, "Timer needs a clock: TimerOptions::now is empty");
  start_ = options_.now();
  if (options_.limit && options_.limit->count() <= 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("Timer has a limit of {} ms; a budget of time is positive", options_.limit->count()));
  }
}

// The clock of a process begins anywhere, so earlier processes count by the seconds that they had taken.
double Timer::seconds() const {
  return seconds_before_ + std::chrono::duration<double>(options_.now() - start_).count();
}

CallbackState Timer::state() const {
  return {{"seconds", seconds()},
          {"epoch_start", epoch_start_},
          {"epoch_seconds", epoch_seconds_},
          {"epoch_steps", epoch_steps_}};
}

// A savepoint has the times of the rank that wrote it, and all ranks go on with these.
void Timer::restore(const CallbackState& state) {
  seconds_before_ = std::get<double>(state.at("seconds"));
  epoch_start_ = std::get<double>(state.at("epoch_start"));
  epoch_seconds_ = std::get<std::vector<double>>(state.at("epoch_seconds"));
  epoch_steps_ = std::get<std::vector<double>>(state.at("epoch_steps"));
  start_ = options_.now();
}

// Each fit() has a budget of its own. One that is resumed gets restore() instead of this call.
void Timer::on_fit_begin(TrainingContext&) {
  seconds_before_ = 0;
  start_ = options_.now();
  epoch_start_ = 0;
  epoch_seconds_.clear();
  epoch_steps_.clear();
  has_ended_fit_ = false;
}

void Timer::on_epoch_begin(TrainingContext&) {
  epoch_start_ = seconds();
}

void Timer::on_step_end(TrainingContext& context, const Logs&) {
  if (!options_.limit || seconds() < std::chrono::duration<double>(*options_.limit).count()) return;
  // Asked again in each step until the ranks have agreed, which does no harm.
  context.ask_to_stop_training();
  if (std::exchange(has_ended_fit_, true) || !context.is_primary()) return;
  log(LogLevel::info, fmt::format("fit() ends after step {} or soon after: it has taken the {} s that its Timer allows",
                                  context.step(), std::chrono::duration<double>(*options_.limit).count()));
}

void Timer::on_epoch_end(TrainingContext& context, const Logs&) {
  epoch_seconds_.push_back(seconds() - epoch_start_);
  epoch_steps_.push_back(static_cast<double>(context.batch_in_epoch()));
  if (!context.is_primary() || !context.writes_files()) return;
  try {
    write(context);
  } catch (const Error& failure) {
    // Times are not worth a training.
    log(LogLevel::error, fmt::format("Timer cannot write the times of epochs; training goes on: {}", failure.what()));
  }
}

void Timer::write(const TrainingContext& context) const {
  if (options_.path.empty() && context.run_directory().empty()) return;
  const std::string path = options_.path.empty() ? context.run_directory() + "/times.csv" : options_.path;
  std::string text = "epoch,seconds,steps,seconds_per_step\n";
  // All epochs each time, so that the file of a resumed fit() has those before the restart.
  for (std::size_t epoch = 0; epoch < epoch_seconds_.size(); ++epoch) {
    const double seconds = epoch_seconds_[epoch];
    const double steps = epoch_steps_[epoch];
    text += fmt::format("{},{},{},{}\n", epoch, seconds, steps, seconds / steps);
  }
  context.file_system().create_folders(parent_folder(path));
  write_whole_file(context.file_system(), path, std::as_bytes(std::span(text)));
}

}  // namespace holdfast
