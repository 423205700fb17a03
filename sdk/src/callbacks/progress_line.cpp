// One row of a terminal is written again and again, so it must never wrap: a second row could not be
// taken back. The parts of the line are left out one by one until it fits. Elsewhere, as in a file,
// whole lines are written rarely. See docs/decisions/journal.md.

#include "holdfast/observe/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "holdfast/base/terminal.h"

namespace holdfast {
namespace {

constexpr auto kTerminalPeriod = std::chrono::milliseconds(100);
constexpr auto kPlainPeriod = std::chrono::minutes(1);

std::string duration(double seconds) {
  const auto whole = static_cast<long>(std::lround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

// The parts of the line, and the order in which a narrow terminal loses them.
enum class Part { step, samples, batch, time_left, epoch, value };
constexpr std::array kLeftOutFirst{Part::step, Part::samples, Part::batch, Part::time_left};

struct Piece {
  Part part;
  std::string text;
};

std::string joined(const std::vector<Piece>& pieces) {
  std::string line;
  for (const Piece& piece : pieces) line += (line.empty() ? "" : "  ") + piece.text;
  return line;
}

}  // namespace

std::string progress_text(const TrainingContext& context, const Logs& logs, const ProgressSpeed& speed, int columns) {
  std::vector<Piece> pieces{
      {Part::epoch, fmt::format("epoch {}/{}", context.epoch() + 1, context.epochs())},
      {Part::batch, fmt::format("batch {}/{}", context.batch_in_epoch(), context.batches_per_epoch())},
      {Part::step, fmt::format("step {}", context.step())}};
  for (const auto& [name, value] : logs) pieces.push_back({Part::value, fmt::format("{} {:.4f}", name, value)});
  if (speed.samples_per_second > 0) {
    pieces.push_back({Part::samples, fmt::format("{:.0f} samples/s", speed.samples_per_second)});
    if (speed.seconds_left > 0) {
      pieces.push_back({Part::time_left, fmt::format("{} left", duration(speed.seconds_left))});
    }
  }
  for (const Part part : kLeftOutFirst) {
    if (columns_of(joined(pieces)) <= columns) break;
    std::erase_if(pieces, [part](const Piece& piece) { return piece.part == part; });
  }
  return fit_to_columns(joined(pieces), columns);
}

ProgressLine::ProgressLine(std::FILE* stream) : stream_(stream), is_terminal_(is_terminal(::fileno(stream))) {}

void ProgressLine::on_step_end(TrainingContext& context, const Logs& logs) {
  if (!context.is_primary()) return;
  const Clock::time_point now = Clock::now();
  if (!has_start_ || context.generation() != start_generation_) {
    // The first step of a process pays for memory and kernels, and the first one of another generation for the pause
    // before it, so speed is measured from its end.
    has_start_ = true;
    start_generation_ = context.generation();
    start_ = now;
    start_samples_ = context.samples_in_epoch();
    start_batch_ = context.batch_in_epoch();
  }
  if (is_due(now)) show(context, logs, false);
}

// After a change of width the line is drawn at once, since the old one may take two rows by then.
bool ProgressLine::is_due(Clock::time_point now) {
  // Counted from the epoch's start too, so a short epoch writes only its last line.
  if (!is_terminal_) return now - std::max(start_, last_shown_) >= kPlainPeriod;
  return now - last_shown_ >= kTerminalPeriod || terminal_columns(::fileno(stream_)) != columns_;
}

void ProgressLine::on_epoch_end(TrainingContext& context, const Logs& logs) {
  if (!context.is_primary()) return;
  show(context, logs, true);
  has_start_ = false;
}

ProgressSpeed ProgressLine::speed(const TrainingContext& context) const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const std::int64_t batches = context.batch_in_epoch() - start_batch_;
  if (!has_start_ || batches <= 0 || seconds <= 0) return {};
  const std::int64_t batches_left =
      context.batches_per_epoch() * (context.epochs() - context.epoch()) - context.batch_in_epoch();
  return {.samples_per_second = static_cast<double>(context.samples_in_epoch() - start_samples_) / seconds,
          .seconds_left = seconds / static_cast<double>(batches) * static_cast<double>(batches_left)};
}

// The last column stays free, since some terminals begin a new row as soon as it is filled. The cursor
// goes back to the first column, so that no other output is appended to the line.
void ProgressLine::show(const TrainingContext& context, const Logs& logs, bool is_epoch_end) {
  last_shown_ = Clock::now();
  std::string line;
  if (is_terminal_) {
    columns_ = terminal_columns(::fileno(stream_));
    line = std::string(kClearLine) + progress_text(context, logs, speed(context), columns_ - 1);
    line += is_epoch_end ? std::string("\n") : std::string(kLineStart);
  } else {
    line = progress_text(context, logs, speed(context)) + "\n";
  }
  std::fwrite(line.data(), 1, line.size(), stream_);
  std::fflush(stream_);
}

}  // namespace holdfast
