#pragma once

// A decision in the making: the next state, the actions, and the reason in words. Each function below makes a part of
// it. They keep ids of members and no references: a process that starts or ends moves the others in the list. A
// function that takes a Member& starts and ends none before it returns.

#include <chrono>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "decide/membership.h"
#include "decide/supervisor.h"
#include "decide/supervisor_text.h"

namespace holdfast::recovery {

struct Draft {
  State state;
  const Event& event;
  Moment now{};
  std::optional<int> subject{};  // the member that the event is about; empty for the run's events, and once it is gone
  std::vector<Action> actions{};
  std::string reason{};
  bool is_of_a_failure = false;
  std::vector<DeviceSlotChange> device_slot_changes{};
};

// These add an action, and a clause of the reason. because() drops a repeated clause.
void act(Draft& draft, Action action);
void because(Draft& draft, const std::string& clause);
template <class Value, class... Values>
void because(Draft& draft, fmt::format_string<Value, Values...> clause, Value&& value, Values&&... values) {
  because(draft, fmt::format(clause, std::forward<Value>(value), std::forward<Values>(values)...));
}

// Asserts that there is a member with this id.
Member& member_of(Draft& draft, int id);
// Both assert that the event has a subject, and that it is not gone.
Member& subject(Draft& draft);
const Member& subject(const Draft& draft);
// Whether the event itself says that the process is gone.
bool is_subject_gone(const Draft& draft);

// run_events.cpp: events of the run, the timer, and the starts that it brings.
void on_start(Draft& draft);
void on_progressed(Draft& draft);
void on_stop_requested(Draft& draft);
void on_scale_requested(Draft& draft);
void on_assignment_proposed(Draft& draft);
void on_slot_lost(Draft& draft);
void on_directory_lost(Draft& draft);
void on_timer(Draft& draft);
bool start_what_is_due(Draft& draft, const std::string& why);
Moment start_of(const Draft& draft, const PendingStart& pending);
bool must_wait_for_an_end(const Draft& draft);
void dismiss_surplus(Draft& draft);
bool holds_up(const Draft& draft, const Member& member);
void start_or_wait(Draft& draft, int slot);
void start_later(Draft& draft, int slot, std::chrono::milliseconds pause);
// How long processes have to leave, once they have finished or were asked to stop.
std::chrono::milliseconds time_to_leave(const Draft& draft);

// host_events.cpp: hosts that join, are lost, come back, leave, and do not reach each other.
void on_host_joined(Draft& draft);
void on_host_lost(Draft& draft);
void on_fence_passed(Draft& draft);
void on_host_returned(Draft& draft);
void on_host_leaving(Draft& draft);
void on_hosts_cut(Draft& draft);
// Goes on without one of two hosts that do not reach each other, if there are any.
void part_hosts(Draft& draft);
void on_hosts_missing(Draft& draft);

// member_events.cpp: events of a member, which is the subject.
void on_ready(Draft& draft);
void on_checked_in(Draft& draft);
void on_slow(Draft& draft);
void on_finished(Draft& draft);
void begin_to_finish(Draft& draft);
void on_failure(Draft& draft, const std::string& cause, CauseKind kind);
void on_died(Draft& draft);
void on_start_failed(Draft& draft);
void on_exited(Draft& draft);
// After members have gone: what waited for them may go on.
void go_on_without_the_gone(Draft& draft);

// failures.cpp: what is to blame for a failure, and which process replaces the lost one.
void fail_subject(Draft& draft, const std::string& cause, CauseKind kind = CauseKind::reported);
bool blames_the_start(Draft& draft);
void give_up_starting(Draft& draft, const LastFailure& failure);
// Ends the generation for all, because a member of it is lost.
void lose_generation(Draft& draft);
// Survivors form one more generation, in which they save their state. `failure` says what was lost.
void go_on_stopping(Draft& draft, const LastFailure& failure);
// Starts a process for each missing replica, the first on `slot`, the others on free ones.
void start_what_is_missing(Draft& draft, std::optional<int> slot, std::chrono::milliseconds pause);
void cancel_generation(Draft& draft);
// Counts one restart more, which `history` allows. Further losses of one failure share its pause.
void count_restart(Draft& draft, RestartHistory& history, bool is_a_further_loss);
void leave_out(Draft& draft, DeviceSlotChange change, const std::string& why, const std::string& last_failure);
void start_missing(Draft& draft);
bool try_rested_slots(Draft& draft);
void try_slots_at_once(Draft& draft);
void try_slots_if_no_other_is_left(Draft& draft);
std::string no_slot_is_free();

// generations.cpp: when the next generation opens, and with which members.
void open_if_possible(Draft& draft);
void regroup_if_that_changes_anything(Draft& draft);

// The end of the run.
bool is_ending(const Draft& draft);
// `clause` replaces the sentence of the ending in the decision's reason, where a failure at its end would be told
// twice.
void end_run(Draft& draft, RunEnding ending, const std::string& clause = "");
void conclude_if_all_are_gone(Draft& draft);
void finish_run(Draft& draft, const RunEnding& ending);
std::string stopped();

// Members.
void start_process(Draft& draft, int slot);
void dismiss(Draft& draft, Member& member);
void dismiss_those_in(Draft& draft, std::initializer_list<Stage> stages);
void record_failure(Draft& draft, Member& member);

// Sets the timer to the next moment at which something is due.
void set_timer(Draft& draft);

}  // namespace holdfast::recovery
