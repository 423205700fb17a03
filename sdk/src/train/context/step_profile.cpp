// Threads share nothing but the clock: each line has one writer at a time, and lines are made before the first and read
// after the last of them.

#include "train/context/step_profile.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace holdfast {

void StepProfile::begin(int workers) {
  lines_ = std::vector<Line>(static_cast<std::size_t>(workers) + 1);
  begun_ = Clock::now();
}

std::vector<ProfileSpan> StepProfile::end() {
  std::vector<ProfileSpan> all;
  for (std::size_t number = 0; number < lines_.size(); ++number) {
    Line& line = lines_[number];
    while (!line.around.empty()) close(static_cast<int>(number));
    end_part(line);
    for (ProfileSpan& span : line.spans) all.push_back(std::move(span));
  }
  lines_.clear();
  return all;
}

// A generation may have more workers than the one in which the profile began.
StepProfile::Line* StepProfile::line(int number) {
  const auto index = static_cast<std::size_t>(number);
  return index < lines_.size() ? &lines_[index] : nullptr;
}

void StepProfile::end_part(Line& line) const {
  if (!std::exchange(line.has_part, false)) return;
  line.spans.back().duration = now() - line.spans.back().begin;
}

// A part that has ended keeps its duration, so what follows on the line does not count as a piece of it.
void StepProfile::enter(int number, std::string_view what) {
  Line* const line = this->line(number);
  if (line == nullptr) return;
  end_part(*line);
  line->spans.push_back({.what = std::string(what), .line = number, .begin = now()});
  line->has_part = true;
}

// The place of the span, and not its address: spans move when the list grows.
void StepProfile::open(int number, std::string_view what) {
  Line* const line = this->line(number);
  if (line == nullptr) return;
  end_part(*line);
  line->around.push_back(line->spans.size());
  line->spans.push_back({.what = std::string(what), .line = number, .begin = now()});
}

void StepProfile::close(int number) {
  Line* const line = this->line(number);
  if (line == nullptr || line->around.empty()) return;
  end_part(*line);
  ProfileSpan& span = line->spans[line->around.back()];
  span.duration = now() - span.begin;
  line->around.pop_back();
}

ProfiledShard::ProfiledShard(StepProfile& profile, int worker, int shard)
    : profile_(profile), line_(StepProfile::line_of_worker(worker)) {
  if (profile_.is_on()) profile_.open(line_, fmt::format("shard {}", shard));
}

ProfiledShard::~ProfiledShard() {
  profile_.close(line_);
}

}  // namespace holdfast
