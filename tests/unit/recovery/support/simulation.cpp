// Checks what must hold in every run, whatever happens to its processes: budgets, sizes, states and deadlines.
// Scenarios test single decisions; this finds what no scenario was written for. docs/decisions/testing.md

#include "unit/recovery/support/simulation.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "decide/membership.h"
#include "decide/supervisor.h"
#include "holdfast/recovery/watchdog.h"
#include "unit/recovery/support/scenario.h"
#include "unit/recovery/support/simulated_world.h"

namespace holdfast::recovery {
namespace {

// Longer than any wait of the supervisor and any fault of the world. Most runs take a few seconds.
constexpr std::chrono::seconds kLongestRun{900};
constexpr int kMostDecisions = 3000;

SupervisorPolicy drawn_policy(SimulationDraws& draws) {
  SupervisorPolicy policy{.recovery = {.stop_grace = std::chrono::seconds(8)}};
  policy.replicas = draws.between(1, 5);
  policy.recovery.spares = draws.chance(50) ? draws.between(1, 2) : 0;
  policy.device_slots = draws.between(1, 4);
  policy.recovery.when_lost = draws.chance(50) ? WhenLost::wait : WhenLost::shrink;
  policy.keep_survivors = !draws.chance(15);
  policy.starts_when_gone = draws.chance(30);
  policy.failures_of_a_step = draws.between(2, 4);
  policy.failures_of_a_slot = draws.between(1, 4);
  if (draws.chance(50)) policy.start_delay = std::chrono::milliseconds(500);
  // From less than a process takes to start to more than most runs take.
  policy.recovery.place_rest = std::chrono::milliseconds(draws.between(50, 3000));
  policy.longest_slot_rest = 4 * policy.recovery.place_rest;
  policy.recovery.max_restarts = draws.chance(75) ? 20 : draws.between(0, 4);
  return policy;
}

void demand(bool is_kept, const std::string& otherwise) {
  if (!is_kept) throw Violation{otherwise};
}

bool is_failure(EventKind kind) {
  return kind == EventKind::failure_reported || kind == EventKind::died || kind == EventKind::exited ||
         kind == EventKind::hang_detected || kind == EventKind::device_failed || kind == EventKind::slow ||
         kind == EventKind::start_failed;
}

class Simulation {
 public:
  Simulation(std::uint64_t seed, int hosts, std::vector<std::string>* log)
      : draws_(~seed), hosts_(hosts), world_(seed, hosts), log_(log) {
    world_.log = log;
  }

  SimulatedRun run() {
    try {
      run_to_the_end();
    } catch (const Violation& violation) {
      run_.violation = violation.what;
    }
    return run_;
  }

 private:
  void run_to_the_end() {
    SupervisorPolicy policy = drawn_policy(draws_);
    if (hosts_ > 1) spread(policy);
    state_ = initial_state(policy, draws_.below(3));
    most_processes_ = state_.policy.replicas + state_.policy.recovery.spares;
    decide_on({.kind = EventKind::start});
    while (state_.phase != RunPhase::over) {
      const std::optional<Event> event = world_.next();
      demand(event.has_value(), "the run waits without end");
      decide_on(*event);
      if (state_.phase != RunPhase::over && device_losses_ > 0 && draws_.chance(2)) lose_device();
      demand(world_.now() - Moment{} < kLongestRun, "the run takes too long");
      demand(run_.decisions < kMostDecisions, "the run goes round in circles");
    }
    check_end();
  }

  // Each host has as many device slots and replicas.
  void spread(SupervisorPolicy& policy) {
    policy.hosts = hosts_;
    const int on_each = draws_.between(1, 2);
    policy.device_slots = on_each * hosts_;
    policy.replicas = policy.device_slots;
    for (int slot = 0; slot < policy.device_slots; ++slot) policy.slot_hosts.push_back(slot / on_each);
  }

  // In the order of a driver's reports: first the device slot, then each process there.
  void lose_device() {
    --device_losses_;
    ++run_.lost_devices;
    const int place = draws_.below(state_.policy.device_slots);
    const bool is_for_good = draws_.chance(70);
    if (is_for_good) decide_on({.kind = EventKind::device_slot_lost, .what = "it is gone", .device_slot = place});
    const State before = state_;
    for (const Member& member : before.members) {
      if (member.device_slot != place || !is_able(member) || state_.phase == RunPhase::over) continue;
      decide_on(
          {.kind = EventKind::device_failed, .member = member.id, .what = "its device is gone", .step = member.step});
    }
  }

  void decide_on(const Event& event) {
    ++run_.decisions;
    kind_ = event.kind;
    note_before(event);
    const auto count_well = [](const State& state) {
      return std::count_if(state.device_slots.begin(), state.device_slots.end(),
                           [](const DeviceSlot& place) { return !place.rest_ends; });
    };
    Decision decision = decide(state_, event, world_.now());
    const State before = std::exchange(state_, std::move(decision.state));
    write_down(event, decision);
    note_after(before, event);
    if (count_well(state_) > count_well(before)) run_.has_place_back = true;
    demand(!decision.reason.empty(), "a decision has no reason");
    check_patience(before, event);
    check_size();
    check_state();
    if (event.kind == EventKind::assignment_proposed && !decision.actions.empty()) {
      assignment_ = {.members = members_, .shards = event.shards};
    }
    for (const Action& action : decision.actions) carry_out(before, action);
    check_timer();
  }

  void write_down(const Event& event, const Decision& decision) const {
    if (log_ == nullptr) return;
    const double seconds = std::chrono::duration<double>(world_.now() - Moment{}).count();
    std::string line = std::to_string(seconds) + " " + std::string(to_string(event.kind));
    line += " member " + std::to_string(event.member) + " step " + std::to_string(event.step) + ": " + decision.reason;
    for (const Action& action : decision.actions) line += "\n    " + describe(action, world_.now());
    log_->push_back(line);
  }

  // --- what an event may lead to

  void note_before(const Event& event) {
    // A process may report its failure first.
    const Member* subject = find_member(state_, event.member);
    const bool is_ready = event.kind == EventKind::ready && subject != nullptr && subject->stage == Stage::starting;
    was_any_ready_ = was_any_ready_ || (is_ready && state_.phase != RunPhase::ending);
    if (event.kind == EventKind::stop_requested && !stopped_at_) {
      stopped_at_ = world_.now();
      had_something_to_save_ = std::any_of(state_.members.begin(), state_.members.end(), is_in_generation);
    }
    if (event.kind == EventKind::scale_requested && event.count > 0) {
      was_scaled_ = true;
      most_processes_ = std::max(most_processes_, event.count + state_.policy.recovery.spares);
    }
  }

  void note_after(const State& before, const Event& event) {
    const Member* was = find_member(before, event.member);
    const Member* is = find_member(state_, event.member);
    if (event.kind == EventKind::host_lost) ++run_.lost_hosts;
    const bool is_paid = state_.history.restarts.size() > before.history.restarts.size() ||
                         (state_.phase == RunPhase::ending && before.phase != RunPhase::ending);
    if (event.kind == EventKind::hosts_cut && is_paid) ++run_.lost_hosts;
    const bool is_loss = event.kind == EventKind::host_lost || event.kind == EventKind::hosts_cut;
    if (is_loss && state_.generation >= 0) check_loss(before);
    if (before.cut && !state_.cut) check_parting(before, event);
    if (!is_failure(event.kind) || is_of_the_run(event.kind) || was == nullptr) return;
    const bool has_failed = is == nullptr || is->stage == Stage::failed;
    const bool is_new = was->stage != Stage::failed && was->stage != Stage::finished && was->stage != Stage::leaving;
    if (!has_failed || !is_new) return;
    ++run_.failures;
    check_trial(before, *was);
    if (was->stage == Stage::training && event.step >= 0 && !event.is_joining)
      failed_steps_[event.step].insert(before.generation);
  }

  // The loss of a host ends no other process, and costs one restart at most.
  void check_loss(const State& before) const {
    demand(state_.history.restarts.size() <= before.history.restarts.size() + 1, "a lost host costs several restarts");
  }

  // At most one of two hosts that do not reach each other goes. It does not have the newest state alone.
  void check_parting(const State& before, const Event& event) {
    std::set<int> gone;
    std::int64_t newest = -1;
    std::int64_t newest_gone = -1;
    for (const Member& member : state_.members) {
      const Member* was = find_member(before, member.id);
      const bool fails_by_itself = is_failure(event.kind) && member.id == event.member;
      if (was == nullptr || !is_able(*was) || fails_by_itself) continue;
      if (is_able(member)) newest = std::max(newest, member.step);
      if (member.stage != Stage::failed) continue;
      newest_gone = std::max(newest_gone, member.step);
      gone.insert(member.host);
    }
    demand(gone.size() <= 1, "both of two hosts that do not reach each other go");
    demand(newest_gone <= newest, "the newest state goes with its host");
    run_.parted += gone.empty() ? 0 : 1;
  }

  // The failure of a process that tries a slot that was left out costs nothing.
  void check_trial(const State& before, const Member& failed) {
    if (!is_on_trial(before, failed)) return;
    const bool others_are_there =
        has_any(before, [&](const Member& member) { return member.id != failed.id && is_in_generation(member); });
    const bool is_end = state_.phase == RunPhase::ending && before.phase != RunPhase::ending;
    const bool is_spared = others_are_there && state_.policy.keep_survivors && before.phase != RunPhase::finishing;
    // Unexplained ends of generations also count against the budget, and may use it up.
    const bool is_other_end = before.is_end_unexplained;
    demand(!is_spared || !is_end || is_other_end, "the run ends because a place was tried that was left out");
    const bool is_paid = state_.history.restarts.size() > before.history.restarts.size() && !is_other_end;
    demand(!is_spared || !is_paid, "a place was tried that was left out, at the expense of the run's budget");
  }

  // --- what must always be so

  void check_state() const {
    std::set<std::pair<int, int>> ranks;
    int able = static_cast<int>(state_.pending_starts.size());
    for (const Member& member : state_.members) {
      if (is_in_generation(member) || member.stage == Stage::starting || member.stage == Stage::ready) ++able;
      if (member.stage != Stage::training) continue;
      demand(ranks.emplace(state_.generation, member.rank).second,
             "two members have rank " + std::to_string(member.rank));
    }
    demand(able <= most_processes_, std::to_string(able) + " processes are there or due, " +
                                        std::to_string(most_processes_) + " were asked for at most");
    const auto most = static_cast<std::size_t>(state_.policy.recovery.max_restarts);
    demand(state_.history.restarts.size() <= most, "the restart budget is overdrawn");
    demand(state_.newcomers.restarts.size() <= most, "the restart budget of newcomers is overdrawn");
  }

  // No member that the running generation could use waits for long, and no generation is too large for long.
  void check_size() const {
    if (state_.phase != RunPhase::running || state_.is_regroup_asked || state_.is_stop_requested) return;
    const auto count = [this](Stage stage) {
      return std::count_if(state_.members.begin(), state_.members.end(),
                           [stage](const Member& member) { return member.stage == stage; });
    };
    const int wanted = std::max(1, state_.target - state_.finished);
    demand(count(Stage::training) <= wanted || state_.finished > 0, "a generation stays too large");
    demand(count(Stage::training) >= wanted || count(Stage::ready) == 0 || state_.finished > 0,
           "a process is ready, but the generation that lacks one is not asked to regroup");
  }

  // A process that leaves when it is asked to is not killed. All do so, except those that hung, or that wait for one
  // that left early or could hardly be killed.
  void check_patience(const State& before, const Event& event) const {
    const bool was_lost =
        event.kind == EventKind::timer && state_.phase == RunPhase::ending && before.phase != RunPhase::ending;
    const bool has_waited_long = world_.longest_end() > state_.policy.recovery.stop_grace / 2;
    const bool has_a_cause = world_.has_anyone_hung() || world_.had_early_exit() || has_waited_long;
    demand(!was_lost || has_a_cause || world_.cuts() + world_.partings() > 0,
           "patience is lost with processes that did as they were asked");
  }

  // A deadline without a timer would never pass.
  void check_timer() const {
    if (state_.phase == RunPhase::over) return;
    if (state_.give_up_at) demand(world_.is_timer_set_until(*state_.give_up_at), "no timer for a deadline");
    for (const PendingStart& pending : state_.pending_starts) {
      const Moment start = state_.policy.starts_when_gone ? pending.at_latest : pending.due;
      demand(world_.is_timer_set_until(start), "no timer for a start that is due");
    }
  }

  // --- actions

  void carry_out(const State& before, const Action& action) {
    demand(!finish_, "an action after the run has finished");
    switch (action.kind) {
      case ActionKind::start_process:
        return start(before, action);
      case ActionKind::kill_process:
        return kill(before, action.member);
      case ActionKind::cancel_generation:
        unexplained_ += kind_ == EventKind::checked_in && !before.is_regroup_asked ? 1 : 0;
        return world_.cancel_generation(action.generation);
      case ActionKind::open_generation:
        return open(before, action);
      case ActionKind::ask_to_regroup:
        run_.regrouped = true;
        return world_.ask_to_regroup();
      case ActionKind::ask_to_stop:
        demand(stopped_at_.has_value(), "replicas are asked to stop although nobody asked for it");
        return world_.ask_to_stop();
      case ActionKind::set_timer:
        return world_.set_timer(action.moment);
      case ActionKind::record_failure:
        // A member whose host was lost may come back, and fail again.
        demand(recorded_.insert(action.member).second || hosts_ > 1, "a failure is recorded twice");
        return demand(!action.text.empty(), "a failure is recorded without a cause");
      case ActionKind::finish:
        finish_ = action;
    }
  }

  void start(const State& before, const Action& action) {
    const auto is_overdue = [this](const PendingStart& pending) { return pending.at_latest <= world_.now(); };
    const bool may_start_beside = !state_.policy.starts_when_gone ||
                                  std::any_of(before.pending_starts.begin(), before.pending_starts.end(), is_overdue);
    // Members that this decision dismisses come after it.
    const auto may_be_there = [&](const Member& member) {
      const Member* was = find_member(before, member.id);
      return member.device_slot == action.device_slot &&
             (member.stage == Stage::failed || (was != nullptr && was_killed(*was)));
    };
    demand(may_start_beside || !has_any(state_, may_be_there),
           "a start on a place whose killed process may still be there");
    demand(action.device_slot >= 0 && action.device_slot < state_.policy.device_slots,
           "a start on a place that is not there");
    demand(!is_resting(state_.device_slots.at(static_cast<std::size_t>(action.device_slot)), world_.now()),
           "a start on a place that is left out");
    if (is_on_trial(state_, *find_member(state_, action.member))) run_.tried_a_place = true;
    demand(!stopped_at_, "a start although the run is to stop");
    const int host = state_.policy.host_of(action.device_slot);
    demand(state_.hosts.at(static_cast<std::size_t>(host)).stage == Host::Stage::there,
           "a start on a host that is not part of the run");
    world_.start_process(action.member, host);
  }

  void kill(const State& before, int id) {
    const Member* member = find_member(state_, id);
    demand(member != nullptr, "a process that is gone is killed");
    const Member* was = find_member(before, id);
    const bool has_failed = member->stage == Stage::failed;
    const bool is_survivor = was != nullptr && is_in_generation(*was) && !has_failed;
    if (kind_ == EventKind::slow && has_failed && was != nullptr && is_in_generation(*was)) check_slow(before, *was);
    const bool is_end = state_.phase == RunPhase::ending || state_.phase == RunPhase::finishing;
    demand(!is_survivor || is_end || was_scaled_ || !state_.policy.keep_survivors,
           "process " + std::to_string(id) + " is killed although it did nothing wrong");
    world_.kill_process(id, has_failed);
  }

  // A slow member still does its work. So it is replaced only when another can take over at once and its device slot
  // is not to blame.
  void check_slow(const State& before, const Member& slow) {
    ++run_.replaced_slow;
    const bool has_spare = std::any_of(before.members.begin(), before.members.end(),
                                       [](const Member& member) { return member.stage == Stage::ready; });
    demand(has_spare, "a slow process is ended without a spare");
    const auto [last, is_first] = slow_replaced_.try_emplace(slow.device_slot, world_.now());
    const bool is_late = world_.now() - last->second >= state_.policy.recovery.restart_window;
    demand(is_first || is_late, "slow processes of one place are replaced again and again");
    last->second = world_.now();
  }

  // An assignment of shards holds for the members that it was made for, while they are together.
  void check_assignment(const Action& action) {
    if (action.members != assignment_.members) assignment_ = {};
    demand(action.shards == assignment_.shards, "shards are dealt otherwise than was decided");
    demand(action.shards.empty() || action.shards.size() == action.members.size(), "a rank has no shards");
    run_.was_assigned_anew = run_.was_assigned_anew || !action.shards.empty();
    members_ = action.members;
  }

  // The ranks of a host follow one another, and each of these hosts is part of the run.
  void check_hosts(const Action& action) const {
    demand(action.hosts.size() == (hosts_ > 1 ? action.members.size() : 0), "a rank has no host");
    std::set<int> seen;
    for (std::size_t rank = 0; rank < action.hosts.size(); ++rank) {
      const int host = action.hosts[rank];
      const Member* member = find_member(state_, action.members[rank]);
      const Host::Stage stage = state_.hosts.at(static_cast<std::size_t>(host)).stage;
      demand(member != nullptr && member->host == host, "a rank has another host than its member");
      demand(stage == Host::Stage::there || stage == Host::Stage::leaving, "a generation has members on a lost host");
      const bool is_next_to_one = rank > 0 && action.hosts[rank - 1] == host;
      demand(seen.insert(host).second || is_next_to_one, "the ranks of a host do not follow one another");
    }
  }

  void open(const State& before, const Action& action) {
    check_assignment(action);
    ++run_.generations;
    demand(action.members.size() <= static_cast<std::size_t>(std::max(1, state_.target)), "a generation is too large");
    check_hosts(action);
    for (std::size_t rank = 0; rank < action.members.size(); ++rank) {
      const Member* member = find_member(state_, action.members[rank]);
      demand(member != nullptr && member->rank == static_cast<int>(rank), "a member does not have its rank");
      const Member* was = find_member(before, action.members[rank]);
      if (was != nullptr && was->rank >= 0) run_.went_on_with_survivors = true;
    }
    world_.open_generation(action.generation, action.members);
  }

  // --- the end

  void check_end() {
    demand(finish_.has_value(), "the run is over without an ending");
    run_.computed_steps_again = world_.steps_computed_again() > 0;
    run_.cuts = world_.cuts();
    run_.agent_deaths = world_.agent_deaths();
    run_.partings = world_.partings();
    run_.returned = world_.returned();
    for (const int member : world_.living()) {
      if (hosts_ > 1 && is_out_of_reach(member)) continue;
      demand(finish_->text.find("process " + std::to_string(member) + " ") != std::string::npos ||
                 finish_->text.find("process " + std::to_string(member) + ",") != std::string::npos,
             "process " + std::to_string(member) + " is left, and the last sentence does not say so");
    }
    run_.ending = ending();
    check_ending();
    check_stop();
  }

  // Its agent ends it, when no head comes back.
  bool is_out_of_reach(int id) const {
    const Member* member = find_member(state_, id);
    return member == nullptr || is_fenced(*member);
  }

  bool says(const std::string& text) const { return finish_->text.find(text) != std::string::npos; }

  Ending ending() const {
    switch (finish_->exit_code) {
      case kExitFinished:
        return Ending::finished;
      case kExitUnrecoverable:
        return Ending::unrecoverable;
      case kExitStopped:
        return Ending::stopped;
      default:
        break;
    }
    if (says("did not end within") || says("cannot be killed")) return Ending::gave_up_on_a_process;
    if (says("gave up at step")) return Ending::gave_up_on_a_step;
    if (says("gave up: no process has got ready")) return Ending::gave_up_on_the_start;
    demand(says("gave up after"), "no reason to give up is known: " + finish_->text);
    return Ending::gave_up_on_budget;
  }

  // A run finishes if it is not stopped, not poisoned and within its budget.
  void check_ending() const {
    switch (run_.ending) {
      case Ending::finished:
        demand(world_.committed() == world_.steps(), "finished before the last step");
        return demand(!world_.is_poisoned(), "a step that nobody survives was passed");
      case Ending::unrecoverable:
        return demand(world_.had_unrecoverable(), "nothing unrecoverable had happened");
      case Ending::stopped:
        return demand(stopped_at_.has_value(), "nobody had asked to stop");
      case Ending::gave_up_on_a_process:
        return demand(world_.had_unkillable(), "every process could be killed");
      case Ending::gave_up_on_budget:
        return demand(run_.failures + unexplained_ + run_.lost_hosts > state_.policy.recovery.max_restarts,
                      "the budget was not spent");
      case Ending::gave_up_on_a_step:
        return check_step();
      case Ending::gave_up_on_the_start:
        demand(!was_any_ready_, "a process had been ready");
        return demand(run_.failures >= state_.policy.failures_of_a_start, "too few starts had failed");
    }
  }

  void check_step() const {
    const auto most = std::max_element(failed_steps_.begin(), failed_steps_.end(),
                                       [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    demand(most != failed_steps_.end() && static_cast<int>(most->second.size()) >= state_.policy.failures_of_a_step,
           "no step had failed that often");
  }

  void check_stop() const {
    if (!stopped_at_) return;
    const std::chrono::milliseconds longest =
        2 * state_.policy.recovery.stop_grace + state_.policy.restart.kill_timeout;
    demand(world_.now() - *stopped_at_ <= longest, "stopping took too long");
    const bool is_in_order = run_.ending == Ending::stopped && says("start the same command again");
    if (is_in_order && had_something_to_save_ && !world_.had_early_exit()) {
      demand(world_.saved() >= world_.newest(), "stopped in order, but step " + std::to_string(world_.newest()) +
                                                    " is not in the newest file, which has step " +
                                                    std::to_string(world_.saved()));
    }
  }

  SimulationDraws draws_;
  const int hosts_;
  int device_losses_ = draws_.chance(25) ? draws_.between(1, 3) : 0;  // that may still come
  SimulatedWorld world_;
  std::vector<std::string>* log_;
  State state_;
  SimulatedRun run_;
  int most_processes_ = 0;
  EventKind kind_ = EventKind::start;  // that is decided on
  int unexplained_ = 0;                // ends of generations
  bool was_scaled_ = false;
  bool was_any_ready_ = false;  // before the end was decided
  std::vector<int> members_;    // of the newest generation, by rank
  MemberAssignment assignment_;
  std::map<int, Moment> slow_replaced_;  // by place
  bool had_something_to_save_ = false;
  std::optional<Moment> stopped_at_;
  std::optional<Action> finish_;
  std::set<int> recorded_;
  std::map<std::int64_t, std::set<int>> failed_steps_;  // generations, by the step that they failed in
};

}  // namespace

SimulatedRun simulate(std::uint64_t seed, std::vector<std::string>* log) {
  return Simulation(seed, 1, log).run();
}

SimulatedRun simulate_hosts(std::uint64_t seed, std::vector<std::string>* log) {
  // Not drawn from the seed itself, from which the world draws.
  return Simulation(seed, 2 + static_cast<int>(seed % 2), log).run();
}

}  // namespace holdfast::recovery
