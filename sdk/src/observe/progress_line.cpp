#include "holdfast/observe/progress_line.h"

#include <unistd.h>

#include <cmath>

namespace holdfast {
namespace {

constexpr auto kTerminalPeriod = std::chrono::milliseconds(100);
constexpr auto kPlainPeriod = std::chrono::seconds(10);

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string duration(double seconds) {
  const auto whole = static_cast<long>(std::lround(seconds));
  if (whole < 60) return std::to_string(whole) + " s";
  if (whole < 3600) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  return std::to_string(whole / 3600) + " h " + std::to_string(whole / 60 % 60) + " min";
}

}  // namespace

std::string progress_text(const TrainingContext& context, const Logs& logs, const ProgressSpeed& speed) {
  std::string text = "epoch " + std::to_string(context.epoch() + 1) + "/" + std::to_string(context.epochs()) +
                     "  batch " + std::to_string(context.batch_in_epoch()) + "/" +
                     std::to_string(context.batches_per_epoch()) + "  step " + std::to_string(context.step());
  for (const auto& [name, value] : logs) text += "  " + name + format(" %.4f", value);
  if (speed.samples_per_second > 0) {
    text += format("  %.0f samples/s", speed.samples_per_second);
    if (speed.seconds_left > 0) text += "  " + duration(speed.seconds_left) + " left";
  }
  return text;
}

ProgressLine::ProgressLine(std::FILE* stream) : stream_(stream), is_terminal_(::isatty(::fileno(stream)) == 1) {}

void ProgressLine::on_step_end(TrainingContext& context, const Logs& logs) {
  if (!context.is_primary()) return;
  const Clock::time_point now = Clock::now();
  if (!has_start_) {
    // The first step of a process pays for memory and kernels, so speed is measured from its end.
    has_start_ = true;
    start_ = now;
    start_samples_ = context.samples_in_epoch();
    start_batch_ = context.batch_in_epoch();
  }
  const Clock::duration period = is_terminal_ ? Clock::duration(kTerminalPeriod) : Clock::duration(kPlainPeriod);
  if (now - last_shown_ < period) return;
  last_shown_ = now;
  show(context, logs, false);
}

void ProgressLine::on_epoch_end(TrainingContext& context, const Logs& logs) {
  if (!context.is_primary()) return;
  show(context, logs, true);
  has_start_ = false;
}

void ProgressLine::show(const TrainingContext& context, const Logs& logs, bool is_epoch_end) {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const std::int64_t batches = context.batch_in_epoch() - start_batch_;
  ProgressSpeed speed;
  if (has_start_ && batches > 0 && seconds > 0) {
    speed.samples_per_second = static_cast<double>(context.samples_in_epoch() - start_samples_) / seconds;
    const std::int64_t batches_left =
        context.batches_per_epoch() * (context.epochs() - context.epoch()) - context.batch_in_epoch();
    speed.seconds_left = seconds / static_cast<double>(batches) * static_cast<double>(batches_left);
  }
  const std::string text = progress_text(context, logs, speed);
  if (is_terminal_) {
    std::fprintf(stream_, "\r\x1b[K%s%s", text.c_str(), is_epoch_end ? "\n" : "");
  } else {
    std::fprintf(stream_, "%s\n", text.c_str());
  }
  std::fflush(stream_);
}

}  // namespace holdfast
