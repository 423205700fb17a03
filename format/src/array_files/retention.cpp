// A pure function of the entries and the policy. First it collects what is protected whatever the policy
// says, then what the policy does not ask for, then what the budget takes away. Why the best savepoints
// are files like all others: docs/decisions/savepoints.md.

#include "holdfast/format/retention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

using Entries = std::vector<SavepointEntry>;
using Steps = std::set<std::int64_t>;

// The newest entry that is known to be whole; the end if no entry is.
Entries::const_iterator newest_whole(const Entries& entries) {
  const auto found = std::find_if(entries.rbegin(), entries.rend(), [](const auto& entry) { return entry.is_whole; });
  return found == entries.rend() ? entries.end() : std::prev(found.base());
}

// The steps of the best `count`, the very best first. The sort is stable, so the older of two equal ones
// wins.
std::vector<std::int64_t> best_steps(const Entries& entries, std::int64_t count, BestValue best) {
  Entries measured;
  std::copy_if(entries.begin(), entries.end(), std::back_inserter(measured),
               [](const auto& entry) { return entry.metric && !std::isnan(*entry.metric); });
  std::stable_sort(measured.begin(), measured.end(), [best](const auto& a, const auto& b) {
    return best == BestValue::lowest ? a.metric.value() < b.metric.value() : a.metric.value() > b.metric.value();
  });
  std::vector<std::int64_t> steps;
  for (const SavepointEntry& entry : measured) {
    if (static_cast<std::int64_t>(steps.size()) < count) steps.push_back(entry.step);
  }
  return steps;
}

// Adds entries to `given_up`, the oldest first, until the rest fits the budget. Protected entries stay.
void obey_budget(const Entries& entries, std::uint64_t max_bytes, const Steps& is_protected, Steps& given_up) {
  std::uint64_t bytes = 0;
  for (const SavepointEntry& entry : entries) {
    if (!given_up.contains(entry.step)) bytes += entry.file_bytes;
  }
  for (const SavepointEntry& entry : entries) {
    if (bytes <= max_bytes) return;
    if (is_protected.contains(entry.step) || !given_up.insert(entry.step).second) continue;
    bytes -= entry.file_bytes;
  }
}

}  // namespace

std::vector<std::string> savepoints_to_delete(std::span<const SavepointEntry> entries, const RetentionPolicy& policy) {
  Entries sorted(entries.begin(), entries.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  const auto newest = newest_whole(sorted);
  if (newest == sorted.end()) return {};
  const std::vector<std::int64_t> best = best_steps(sorted, policy.keep_best, policy.best);

  Steps is_protected;
  Steps given_up;
  const std::int64_t last_count = newest - sorted.begin() + 1;
  for (auto entry = sorted.begin(); entry != sorted.end(); ++entry) {
    const bool is_very_best = !best.empty() && best.front() == entry->step;
    const bool is_kept_always = policy.keep_every_steps > 0 && entry->step % policy.keep_every_steps == 0;
    // What is newer than the newest whole entry was not read yet, or is damaged. Either way it stays.
    if (entry >= newest || is_very_best || is_kept_always) is_protected.insert(entry->step);
    const bool is_among_last = policy.keep_last == 0 || entry - sorted.begin() >= last_count - policy.keep_last;
    const bool is_among_best = std::find(best.begin(), best.end(), entry->step) != best.end();
    if (!is_among_last && !is_among_best && !is_protected.contains(entry->step)) given_up.insert(entry->step);
  }
  if (policy.max_bytes > 0) obey_budget(sorted, policy.max_bytes, is_protected, given_up);

  std::vector<std::string> names;
  for (const SavepointEntry& entry : sorted) {
    if (given_up.contains(entry.step)) names.push_back(entry.name);
  }
  return names;
}

void check(const RetentionPolicy& policy) {
  if (policy.keep_last < 0 || policy.keep_best < 0 || policy.keep_every_steps < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("keep_last {}, keep_best {} and keep_every_steps {} must not be negative; use 0 or more",
                            policy.keep_last, policy.keep_best, policy.keep_every_steps));
  }
}

}  // namespace holdfast::format
