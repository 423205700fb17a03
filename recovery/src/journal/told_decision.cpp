#include "journal/told_decision.h"

namespace holdfast::recovery {
namespace {

bool is_loss(EventKind kind) {
  return kind == EventKind::device_slot_lost || kind == EventKind::host_lost || kind == EventKind::hosts_cut;
}

bool is_asked_for(EventKind kind) {
  return kind == EventKind::stop_requested || kind == EventKind::scale_requested ||
         kind == EventKind::assignment_proposed;
}

}  // namespace

std::optional<LogLevel> told_level(const Event& event, const Decision& decision, bool has_parted_hosts) {
  if (is_loss(event.kind) || has_parted_hosts) return LogLevel::warning;
  const bool is_news_of_a_host = is_of_a_host(event.kind) && event.kind != EventKind::fence_passed;
  // A failure that leaves a slot out is told as an incident.
  const bool is_of_a_slot = !decision.device_slot_changes.empty() && !decision.is_of_a_failure;
  if (is_asked_for(event.kind) || is_news_of_a_host || is_of_a_slot) return LogLevel::info;
  return std::nullopt;
}

}  // namespace holdfast::recovery
