#pragma once

// A decision in the making: the next state, the actions, and the reason in words. Each function below makes a part of
// it. They keep ids of members, never references: a process that starts or ends moves the others in the list.

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

// These add an action, a clause of the reason, and a change of a device slot. because() drops a repeated clause.
void act(Draft& draft, Action action);
void because(Draft& draft, const std::string& clause);
template <class Value, class... Values>
void because(Draft& draft, fmt::format_string<Value, Values...> clause, Value&& value, Values&&... values) {
  because(draft, fmt::format(clause, std::forward<Value>(value), std::forward<Values>(values)...));
}
void note_slot_change(Draft& draft, const DeviceSlotChange& change);

// Asserts that there is a member with this id.
Member& member_of(Draft& draft, int id);
// Both assert that the event has a subject, and that it is not gone.
Member& subject(Draft& draft);
const Member& subject(const Draft& draft);
// Whether the event itself says that the process is gone.
bool is_subject_gone(const Draft& draft);

// The names of the members for which `predicate` holds, such as "process 4 (replica 0), process 7".
template <class Predicate>
std::string names_of(const Draft& draft, const Predicate& predicate) {
  std::string names;
  for (const Member& member : draft.state.members) {
    if (predicate(member)) names += (names.empty() ? "" : ", ") + full_name_of(member);
  }
  return names;
}

// run_events.cpp: events of the run, the timer, and the starts that it brings.
void on_start(Draft& draft);
void on_progressed(Draft& draft);
bool clears_slot(Draft& draft, const Member& member);
void on_stop_requested(Draft& draft);
void on_scale_requested(Draft& draft);
void on_assignment_proposed(Draft& draft);
void on_slot_lost(Draft& draft);
void on_directory_lost(Draft& draft);
void dismiss_surplus(Draft& draft);
void on_timer(Draft& draft);
bool start_what_is_due(Draft& draft, const std::string& why);
Moment start_of(const Draft& draft, const PendingStart& pending);
bool is_held(const Draft& draft, int slot);
bool holds_slot(const Draft& draft, const Member& member, int slot);
bool must_wait_for_an_end(const Draft& draft);
bool holds_up(const Draft& draft, const Member& member);
void start_pending(Draft& draft, const PendingStart& pending);
void start_or_wait(Draft& draft, int slot);
void start_later(Draft& draft, int slot, std::chrono::milliseconds pause);
void on_patience_lost(Draft& draft);

// member_events.cpp: events of a member, which is the subject.
void on_ready(Draft& draft);
void on_checked_in(Draft& draft);
void on_slow(Draft& draft);
void on_finished(Draft& draft);
bool nobody_is_left_to_finish(const Draft& draft);
void begin_to_finish(Draft& draft);
void on_failure(Draft& draft, const std::string& cause, bool is_explained);
void on_died(Draft& draft);
void on_start_failed(Draft& draft);
void on_exited(Draft& draft);
bool is_expected_exit(const Draft& draft);
void explain_failure(Draft& draft, const std::string& how);
void remove_subject(Draft& draft);

// failures.cpp: what is to blame for a failure, and which process replaces the lost one.
void fail_subject(Draft& draft, const std::string& cause, bool is_explained);
bool blames_the_step(Draft& draft);
bool blames_the_start(Draft& draft);
void give_up_starting(Draft& draft, const std::string& failure);
void lose_generation(Draft& draft);
void end_all_for_a_new_start(Draft& draft);
void cancel_generation(Draft& draft);
void go_on_stopping(Draft& draft, const std::string& sentence);
struct Loss {
  std::string sentence{};
  bool others_go_on = false;      // the lost member was a newcomer, or tried a device slot
  bool is_a_further_one = false;  // its generation had already lost a member
};
void replace_lost(Draft& draft, const Loss& loss);
std::string restart_limit(const Draft& draft);
std::string budget_spent(const Draft& draft);
void blame_slot(Draft& draft, int slot, const std::string& failure);
void leave_out(Draft& draft, DeviceSlotChange change, const std::string& why, const std::string& last_failure);
void start_what_is_missing(Draft& draft, std::chrono::milliseconds pause);
void start_missing(Draft& draft);
bool try_rested_slots(Draft& draft);
void try_slots_at_once(Draft& draft);
bool can_others_go_on(const Draft& draft);
std::string no_slot_is_free();

// generations.cpp: when the next generation opens, and with which members.
void open_if_possible(Draft& draft);
bool waits_for_more(const Draft& draft);
void on_nobody_left(Draft& draft);
bool is_allowed_unexplained(Draft& draft);
void open_generation(Draft& draft, const std::vector<int>& by_rank);
void regroup_if_that_changes_anything(Draft& draft);

// The end of the run.
bool is_ending(const Draft& draft);
void end_run(Draft& draft, int exit_code, const std::string& sentence, const std::string& reason = "");
void conclude_if_all_are_gone(Draft& draft);
void finish_run(Draft& draft, int exit_code, const std::string& sentence);
std::string stopped();

// Members.
void start_process(Draft& draft, int slot);
void dismiss(Draft& draft, Member& member);
void dismiss_those_in(Draft& draft, std::initializer_list<Stage> stages);
void record_failure(Draft& draft, Member& member);

// Sets the timer to the next moment at which something is due.
void set_timer(Draft& draft);

}  // namespace holdfast::recovery
