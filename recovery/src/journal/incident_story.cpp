// One exception used to make more than ten lines of the watchdog's decisions, and its sentence stood there three times.
// So decisions go to the journal, and users read these lines. The story waits until training has gone on, to put
// failure and outcome into one line. See docs/decisions/journal.md.

#include "journal/incident_story.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "decide/supervisor_text.h"
#include "holdfast/recovery/exit_codes.h"

namespace holdfast::recovery {
namespace {

// `finished` is one of them: a process that was in no generation cannot have finished, so it has failed.
bool is_noticed_by(EventKind kind) {
  return kind == EventKind::died || kind == EventKind::exited || kind == EventKind::failure_reported ||
         kind == EventKind::hang_detected || kind == EventKind::device_failed || kind == EventKind::start_failed ||
         kind == EventKind::slow || kind == EventKind::finished;
}

const Action* find_action(const Decision& decision, ActionKind kind, int member = -1) {
  const auto found = std::find_if(decision.actions.begin(), decision.actions.end(), [&](const Action& action) {
    return action.kind == kind && (member < 0 || action.member == member);
  });
  return found == decision.actions.end() ? nullptr : &*found;
}

std::string times(std::size_t count) {
  if (count == 2) return "twice";
  return count == 3 ? "three times" : fmt::format("{} times", count);
}

std::string at_step(std::int64_t step) {
  return step < 0 ? "" : fmt::format(" in step {}", step);
}

}  // namespace

std::vector<IncidentStory::Line> IncidentStory::take(const Event& event, int rank, const Decision& decision,
                                                     Moment now) {
  target_ = decision.state.target;
  const auto is_starting = [](const Member& member) { return member.stage == Stage::starting; };
  is_more_expected_ = !decision.state.pending_starts.empty() ||
                      std::any_of(decision.state.members.begin(), decision.state.members.end(), is_starting);
  // First the failure, then what follows from it.
  note_failure(event, rank, decision, now);
  if (Loss* loss = event.kind == EventKind::exited ? find_loss(event.member) : nullptr) loss->signal = event.signal;
  settle_causes(decision);
  note_slots(event, decision);
  note_generation(decision, now);
  // The supervisor drops an event of an ended generation, and so does the story.
  const bool is_dropped = event.generation != decision.state.generation;
  if (event.kind == EventKind::progressed && !is_dropped) note_progress(event, now);
  return look(now);
}

// Until the next generation opens, further losses belong to the same incident. The loss of a newcomer, while others go
// on, is an incident of its own.
void IncidentStory::note_failure(const Event& event, int rank, const Decision& decision, Moment now) {
  if (!is_noticed_by(event.kind) || !decision.is_of_a_failure || find_loss(event.member) != nullptr) return;
  const Member* member = find_member(decision.state, event.member);
  const bool has_failed = member != nullptr && member->stage == Stage::failed;
  if (!has_failed && find_action(decision, ActionKind::record_failure, event.member) == nullptr) return;
  const bool was_member = std::find(by_rank_.begin(), by_rank_.end(), event.member) != by_rank_.end();
  const bool others_go_on = !was_member && decision.state.phase == RunPhase::running;
  const bool is_a_further_one = !incidents_.empty() && !others_go_on && !incidents_.back().is_open &&
                                !incidents_.back().is_of_a_newcomer && !incidents_.back().is_told;
  if (!is_a_further_one) incidents_.push_back({.noticed = now, .is_of_a_newcomer = others_go_on});
  Incident& incident = incidents_.back();
  incident.step = std::max(incident.step, event.step);
  incident.losses.push_back(
      {.member = event.member, .rank = rank, .kind = event.kind, .is_thrown = event.is_thrown, .what = event.what});
}

// The cause of a death is recorded later than the death, when the kernel has confirmed the exit.
void IncidentStory::settle_causes(const Decision& decision) {
  for (const Action& action : decision.actions) {
    if (action.kind != ActionKind::record_failure) continue;
    Loss* loss = find_loss(action.member);
    if (loss == nullptr) continue;
    loss->cause = action.text;
    loss->cause_kind = action.cause_kind;
  }
}

// A slot is left out because of a failure, so the remark belongs to the newest incident.
void IncidentStory::note_slots(const Event& event, const Decision& decision) {
  if (incidents_.empty() || event.kind == EventKind::device_slot_lost) return;
  for (const DeviceSlotChange& change : decision.device_slot_changes) {
    if (change.kind != DeviceSlotChange::Kind::left_out) continue;
    incidents_.back().remarks.push_back(
        fmt::format("device slot {} is left out for {}", change.device_slot, seconds(change.rest)));
  }
}

void IncidentStory::note_generation(const Decision& decision, Moment now) {
  const Action* opened = find_action(decision, ActionKind::open_generation);
  if (opened == nullptr) return;
  for (Incident& incident : incidents_) {
    if (incident.is_open || incident.is_of_a_newcomer) continue;
    incident.is_open = true;
    incident.replicas = static_cast<int>(opened->members.size());
    incident.survivors =
        static_cast<int>(std::count_if(opened->members.begin(), opened->members.end(), [this](int member) {
          return std::find(by_rank_.begin(), by_rank_.end(), member) != by_rank_.end();
        }));
    // Without steps, the next generation is the only progress that can be seen.
    if (!tells_steps_) incident.went_on = now;
  }
  by_rank_ = opened->members;
}

void IncidentStory::note_progress(const Event& event, Moment now) {
  for (Incident& incident : incidents_) {
    if (!incident.is_open || incident.went_on) continue;
    incident.went_on = now;
    incident.went_on_at = event.step;
  }
}

// A death and the exit after it are two events of one loss.
IncidentStory::Loss* IncidentStory::find_loss(int member) {
  for (Incident& incident : incidents_) {
    for (Loss& loss : incident.losses) {
      if (loss.member == member) return &loss;
    }
  }
  return nullptr;
}

// A line of an incident, and a second one if training went on only after the first.
std::vector<IncidentStory::Line> IncidentStory::look(Moment now) {
  std::vector<Line> lines;
  for (Incident& incident : incidents_) {
    const bool is_known = std::none_of(incident.losses.begin(), incident.losses.end(),
                                       [](const Loss& loss) { return loss.cause.empty(); });
    const bool is_over = incident.went_on || incident.is_of_a_newcomer;
    // One line is to tell cause and outcome. When either takes longer than kPatience, users get the line without it.
    if (!incident.is_told && ((is_over && is_known) || now - incident.noticed >= kPatience)) {
      incident.is_told = true;
      lines.push_back({LogLevel::warning, fmt::format("{}; {}", describe(incident), describe_outcome(incident))});
    } else if (incident.is_told && incident.went_on) {
      lines.push_back({LogLevel::info, describe_outcome(incident)});
    }
  }
  std::erase_if(incidents_, [](const Incident& incident) {
    return incident.is_told && (incident.went_on || incident.is_of_a_newcomer);
  });
  return lines;
}

std::vector<IncidentStory::Line> IncidentStory::end(const RunEnding& ending) {
  std::vector<Line> lines;
  const Loss* last = loss_that_ends_the_run(ending);
  for (Incident& incident : incidents_) {
    // The run's last sentence tells this incident.
    const bool is_of_the_end =
        last != nullptr && std::all_of(incident.losses.begin(), incident.losses.end(),
                                       [&](const Loss& loss) { return loss.cause == last->cause; });
    if (std::exchange(incident.is_told, true) || is_of_the_end) continue;
    // The warning comes at the end of a run, where it would read as the reason for it.
    const std::string then = ending.exit_code == kExitFinished ? "; the run has finished all the same" : "";
    lines.push_back({LogLevel::warning, describe(incident) + then});
  }
  return lines;
}

std::string IncidentStory::last_sentence(const RunEnding& ending) const {
  const Loss* last = loss_that_ends_the_run(ending);
  if (last == nullptr) return sentence_of(ending);
  // How often the cause struck: starts that failed with it count by rank, and generations that ended with it.
  std::map<int, std::size_t> of_rank;
  std::size_t count = 0;
  std::int64_t step = -1;
  for (const Incident& incident : incidents_) {
    const std::map<int, std::size_t> before = of_rank;
    for (const Loss& loss : incident.losses) {
      if (loss.cause == last->cause) ++of_rank[loss.rank];
    }
    if (of_rank == before) continue;
    ++count;
    step = incident.step;
  }
  std::set<int> ranks;
  for (const auto& [rank, starts] : of_rank) {
    ranks.insert(rank);
    count = std::max(count, starts);
  }
  const bool is_told = last->kind == EventKind::failure_reported;
  const std::string who = describe_ranks(ranks);
  // The number of starts that failed is told below.
  const std::string why = ending.is_of_starts ? "" : ending.reason;
  std::string remark;
  if (is_told) remark = (last->is_thrown ? "thrown by the training function in " : "in ") + who;
  // The reason to give up contains the count.
  if (count > 1 && why.empty()) remark += (remark.empty() ? "" : ", ") + times(count);
  if (!why.empty()) remark += (remark.empty() ? "" : "; ") + why;
  remark += ending.advice;
  const std::string text =
      is_told ? last->cause : fmt::format("{} {}", who, what_happened(*last, ranks.size() > 1, step));
  return fmt::format("training ended: {}{}", text, remark.empty() ? "" : fmt::format(" ({})", remark));
}

// Null if no failure ends the run, or one that is not of a process.
const IncidentStory::Loss* IncidentStory::loss_that_ends_the_run(const RunEnding& ending) const {
  const bool is_orderly = ending.exit_code == kExitFinished || ending.exit_code == kExitStopped;
  if (is_orderly || !ending.failure) return nullptr;
  for (const Incident& incident : incidents_) {
    for (const Loss& loss : incident.losses) {
      if (loss.member == ending.failure->member && !loss.cause.empty()) return &loss;
    }
  }
  return nullptr;
}

// "was killed by signal 9 (SIGKILL) in step 40": what happened to a replica, as a predicate.
std::string IncidentStory::what_happened(const Loss& loss, bool are_several, std::int64_t step) {
  const std::string was = are_several ? "were " : "was ";
  if (loss.cause.empty()) return "died" + at_step(step);
  // "killed by" needs a verb before it, "exited with" is one.
  if (loss.cause_kind == CauseKind::exit_status) return (loss.signal != 0 ? was : "") + loss.cause + at_step(step);
  switch (loss.kind) {
    case EventKind::start_failed:
      return loss.cause;
    case EventKind::slow:
      return fmt::format("{}slow: {}", was, loss.what);
    case EventKind::hang_detected:
      return fmt::format("hung{}: {}", at_step(step), loss.cause);
    case EventKind::device_failed:
      return fmt::format("lost its device{}: {}", at_step(step), loss.cause);
    default:
      return fmt::format("failed{}: {}", at_step(step), loss.cause);
  }
}

// One cause often takes several replicas, and one clause for each would hide that.
// Names losses with the same cause together.
std::string IncidentStory::describe(const Incident& incident) const {
  std::vector<std::pair<const Loss*, std::set<int>>> groups;
  for (const Loss& loss : incident.losses) {
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& known) { return known.first->cause == loss.cause; });
    if (group != groups.end()) {
      group->second.insert(loss.rank);
    } else {
      groups.push_back({&loss, {loss.rank}});
    }
  }
  std::string text;
  for (const auto& [loss, ranks] : groups) {
    const std::string who = incident.is_of_a_newcomer
                                ? fmt::format("a process that was to become replica {}", loss->rank)
                                : describe_ranks(ranks);
    const std::string what = what_happened(*loss, ranks.size() > 1, incident.step);
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", who, what);
  }
  for (const std::string& remark : incident.remarks) text += "; " + remark;
  return text;
}

std::string IncidentStory::describe_outcome(const Incident& incident) const {
  if (incident.is_of_a_newcomer) return "the others go on";
  if (!incident.went_on) {
    if (incident.is_open) return fmt::format("training goes on with {}", counted(incident.replicas, "replica"));
    return is_more_expected_ ? "training waits for a new process" : "training waits for the others";
  }
  // A new replica among them would make this wrong.
  const bool are_others = incident.survivors > 0 && incident.survivors == incident.replicas;
  const std::string others =
      incident.replicas == 1 ? "the other replica" : fmt::format("the other {}", counted(incident.replicas, "replica"));
  std::string text =
      fmt::format("training went on with {}", are_others ? others : counted(incident.replicas, "replica"));
  if (incident.went_on_at >= 0) text += fmt::format(" at step {}", incident.went_on_at);
  text += fmt::format(" after {}", seconds(*incident.went_on - incident.noticed));
  if (incident.replicas < target_ && is_more_expected_) text += "; a new process joins when it is ready";
  return text;
}

std::string IncidentStory::describe_ranks(const std::set<int>& ranks) const {
  if (ranks.size() == 1) return fmt::format("replica {}", *ranks.begin());
  if (static_cast<int>(ranks.size()) == target_) {
    return target_ == 2 ? "both replicas" : fmt::format("all {} replicas", target_);
  }
  std::string text = "replicas";
  for (const int rank : ranks) {
    text += fmt::format("{}{}", rank == *ranks.begin() ? " " : rank == *ranks.rbegin() ? " and " : ", ", rank);
  }
  return text;
}

}  // namespace holdfast::recovery
