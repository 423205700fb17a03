#include <algorithm>
#include <utility>

#include "decide/decider.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/watchdog.h"

namespace holdfast::recovery {

void Decider::open_if_possible() {
  if (state_.phase != RunPhase::gathering) return;
  if (has_stage(state_, Stage::training)) return because("others have not left their generation yet");
  if (waits_for_more()) return because("the next generation waits for new processes");
  const std::vector<int> members = members_of_the_next(state_);
  if (members.empty()) return on_nobody_left();
  if (state_.is_end_unexplained && !state_.is_stop_requested && !is_allowed_unexplained()) return;
  if (!has_any(state_, brings_state) && has_any(state_, could_still_write)) {
    // They might still write the files that the state is taken from.
    if (!state_.give_up_at) state_.give_up_at = now_ + state_.policy.restart.kill_timeout;
    return because("the next generation waits for the end of killed processes");
  }
  open(dealt_ranks(state_, members));
}

bool Decider::waits_for_more() const {
  const int there = count_stage(state_, Stage::waiting) + count_stage(state_, Stage::ready);
  const bool is_more_expected = has_stage(state_, Stage::starting) || !state_.pending_starts.empty();
  if (there >= wanted(state_) || !is_more_expected || state_.is_stop_requested) return false;
  return !has_stage(state_, Stage::waiting) || state_.policy.when_lost == WhenLost::wait;
}

void Decider::on_nobody_left() {
  if (state_.is_stop_requested) return end_run(kExitStopped, stopped());
  if (state_.finished > 0) return begin_to_finish();
  end_run(kExitGaveUp, "gave up: no replica is left");
}

// Members that leave their generations again and again, and none fails, would go on with that for ever.
bool Decider::is_allowed_unexplained() {
  const RestartPolicy& policy = state_.policy.restart;
  if (allows_restart(policy, state_.history, now_)) {
    state_.history = with_restart(policy, std::move(state_.history), now_);
    state_.is_end_unexplained = false;
    return true;
  }
  end_run(kExitGaveUp, budget_spent() + "; the last time replicas left generation " +
                           std::to_string(state_.generation) + ", and none of them had failed");
  return false;
}

void Decider::open(const std::vector<int>& by_rank) {
  if (!state_.is_stop_requested) state_.give_up_at.reset();
  state_.generation = state_.next_generation++;
  state_.phase = RunPhase::running;
  state_.is_regroup_asked = false;
  state_.is_end_unexplained = false;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    Member& member = *find(by_rank[rank]);
    if (is_newcomer(member)) state_.newcomers.without_progress = 0;
    member.rank = static_cast<int>(rank);
    member.stage = Stage::training;
  }
  dismiss_those_in({Stage::waiting});
  because("generation " + std::to_string(state_.generation) + " opens with " + std::to_string(by_rank.size()) +
          " replicas");
  if (!state_.deal.members.empty() && state_.deal.members != by_rank) {
    because("shards are dealt evenly, since its members are others");
    state_.deal = {};
  }
  act({.kind = ActionKind::open_generation,
       .generation = state_.generation,
       .members = by_rank,
       .shards = state_.deal.shards});
  if (state_.is_stop_requested) act({.kind = ActionKind::ask_to_stop});
  try_rested_places();
}

// A generation that lacks replicas regroups when one is ready, and one that has too many when fewer are wanted.
void Decider::regroup_if_that_changes_anything() {
  if (state_.phase != RunPhase::running || state_.is_regroup_asked || state_.is_stop_requested) return;
  const auto training = count_stage(state_, Stage::training);
  const bool can_grow = training < wanted(state_) && has_stage(state_, Stage::ready);
  if (training == 0 || (!can_grow && training <= wanted(state_))) return;
  because("the generation regroups at its next step");
  state_.is_regroup_asked = true;
  act({.kind = ActionKind::ask_to_regroup});
}

bool Decider::is_ending() const {
  return state_.phase == RunPhase::finishing || state_.phase == RunPhase::ending;
}

// `reason`: where the sentence ends with a failure that the reason has told already, what it says beside that.
void Decider::end_run(int exit_code, const std::string& sentence, const std::string& reason) {
  because(reason.empty() ? sentence : reason);
  const bool is_unexplained = subject_ != nullptr && subject_->failure && !subject_->failure->is_explained &&
                              sentence.ends_with(subject_->failure->cause);
  state_.verdict = {.exit_code = exit_code, .sentence = sentence, .unexplained = is_unexplained ? subject_->id : -1};
  if (state_.phase == RunPhase::running) cancel_generation();
  state_.phase = RunPhase::ending;
  state_.pending_starts.clear();
  for (const Member& member : state_.members) {
    if (&member != subject_ || !is_subject_gone()) act({.kind = ActionKind::kill_process, .member = member.id});
  }
  state_.give_up_at = now_ + state_.policy.restart.kill_timeout;
  if (subject_ == nullptr || state_.members.empty()) conclude_if_all_are_gone();
}

void Decider::conclude_if_all_are_gone() {
  if (state_.phase == RunPhase::ending && state_.members.empty()) {
    because("all processes are gone");
    return finish(state_.verdict->exit_code, state_.verdict->sentence);
  }
  if (state_.phase == RunPhase::finishing && state_.members.empty()) {
    because("all processes are gone");
    return finish(kExitFinished, "finished");
  }
  const bool is_stopping = state_.is_stop_requested && !is_ending() && state_.phase != RunPhase::over;
  if (is_stopping && state_.members.empty()) return finish(kExitStopped, stopped());
}

void Decider::finish(int exit_code, const std::string& sentence) {
  state_.phase = RunPhase::over;
  state_.give_up_at.reset();
  for (Member& member : state_.members) {
    if (member.failure) record(member);
  }
  act({.kind = ActionKind::finish, .exit_code = exit_code, .text = sentence});
}

std::string Decider::stopped() {
  return "stopped as asked; start the same command again to go on";
}

void Decider::start_process(int place) {
  state_.members.push_back({.id = state_.next_member++, .place = place});
  const int id = state_.members.back().id;
  because("process " + std::to_string(id) + " starts");
  if (subject_ != nullptr) subject_ = find(event_.member);
  act({.kind = ActionKind::start_process, .member = id, .place = place});
  if (!state_.places.at(place).rest_ends) return;
  tell_of_place({.kind = PlaceChange::Kind::tried, .place = place, .member = id});
}

void Decider::dismiss(Member& member) {
  because(name_of(member) + " is dismissed");
  member.stage = Stage::leaving;
  act({.kind = ActionKind::kill_process, .member = member.id});
}

void Decider::dismiss_those_in(std::initializer_list<Stage> stages) {
  for (Member& member : state_.members) {
    if (std::find(stages.begin(), stages.end(), member.stage) != stages.end()) dismiss(member);
  }
}

void Decider::record(Member& member) {
  const Failure failure = *std::exchange(member.failure, std::nullopt);
  act({.kind = ActionKind::record_failure,
       .member = member.id,
       .generation = failure.generation,
       .rank = member.rank,
       .step = failure.step,
       .text = failure.cause,
       .moment = failure.detected});
}

Member* Decider::find(int id) {
  const auto found =
      std::find_if(state_.members.begin(), state_.members.end(), [id](const Member& m) { return m.id == id; });
  return found == state_.members.end() ? nullptr : &*found;
}

void Decider::set_timer() {
  std::optional<Moment> next = state_.give_up_at;
  if (!must_wait_for_an_end()) {
    for (const PendingStart& pending : state_.pending_starts) {
      next = std::min(next.value_or(start_of(pending)), start_of(pending));
    }
  }
  const bool is_in_use = state_.phase == RunPhase::running && !state_.is_stop_requested;
  if (is_in_use && count_missing(state_) > 0) {
    if (const auto end = next_end_of_a_rest(state_, now_)) next = std::min(next.value_or(*end), *end);
  }
  if (next && next != state_.timer && state_.phase != RunPhase::over) {
    act({.kind = ActionKind::set_timer, .moment = *next});
  }
  state_.timer = next;
}

void Decider::act(Action action) {
  actions_.push_back(std::move(action));
}

void Decider::tell_of_place(const PlaceChange& change) {
  place_changes_.push_back(change);
}

void Decider::because(const std::string& clause) {
  if (reason_.ends_with(clause)) return;
  reason_ += (reason_.empty() ? "" : "; ") + clause;
}

}  // namespace holdfast::recovery
