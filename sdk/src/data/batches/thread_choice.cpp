#include "data/batches/thread_choice.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace holdfast {
namespace {

// Loading must be quicker than a step by this factor, or a slow batch would make the next step wait.
constexpr double kHeadroom = 1.25;

double median_of(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

void keep_last(std::deque<double>& values, double value) {
  values.push_back(value);
  if (values.size() > ThreadChoice::kWindow) values.pop_front();
}

}  // namespace

int threads_to_load(std::span<const double> loads, std::span<const double> steps, int most) {
  if (loads.empty() || steps.empty()) return 1;
  const double load = median_of(loads);
  const double step = median_of(steps);
  if (!(load > 0)) return 1;
  // A step that took no time is waited for by as many threads as there are.
  const double threads = step > 0 ? std::ceil(kHeadroom * load / step) : static_cast<double>(most);
  return static_cast<int>(std::clamp(threads, 1.0, static_cast<double>(std::max(1, most))));
}

void ThreadChoice::note_load(std::chrono::duration<double> time) {
  keep_last(loads_, time.count() * threads_);
  ++loads_since_choice_;
}

void ThreadChoice::note_step(std::chrono::duration<double> time) {
  keep_last(steps_, time.count());
}

std::optional<int> ThreadChoice::next() {
  if (loads_since_choice_ < kWindow || steps_.empty()) return std::nullopt;
  loads_since_choice_ = 0;
  const std::vector<double> loads(loads_.begin(), loads_.end());
  const std::vector<double> steps(steps_.begin(), steps_.end());
  const int threads = threads_to_load(loads, steps, most_);
  if (threads == threads_) return std::nullopt;
  threads_ = threads;
  return threads;
}

}  // namespace holdfast
