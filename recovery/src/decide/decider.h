#pragma once

// One decision of the supervisor: from a state and an event to another state, actions, and the reason in words. Its
// functions stand in decider_events.cpp, decider_failures.cpp and decider_generations.cpp.

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "decide/membership.h"
#include "decide/supervisor.h"
#include "decide/supervisor_text.h"

namespace holdfast::recovery {

class Decider {
 public:
  Decider(const State& state, const Event& event, Moment now);
  Decision decide();

 private:
  // Events of the run.
  void on_run_event();
  void on_start();
  void on_progressed();
  bool clears_place(const Member& member);
  void on_stop_requested();
  void on_scale_requested();
  void on_deal_proposed();
  void on_place_lost();
  void on_directory_lost();
  void dismiss_surplus();
  void on_timer();
  bool start_what_is_due(const std::string& why);
  Moment start_of(const PendingStart& pending) const;
  bool is_held(int place) const;
  bool holds(const Member& member, int place) const;
  bool must_wait_for_an_end() const;
  bool holds_up(const Member& member) const;
  void start_pending(const PendingStart& pending);
  void start_or_wait(int place);
  void start_later(int place, std::chrono::milliseconds pause);
  void on_patience_lost();

  // Events of a member, the subject.
  void on_member_event();
  void on_ready();
  void on_checked_in();
  void on_slow();
  void on_finished();
  bool nobody_is_left_to_finish() const;
  void begin_to_finish();
  void on_failure(const std::string& cause, bool is_explained);
  void on_died();
  void on_start_failed();
  void on_exited();
  bool is_expected_exit() const;
  void explain_failure(const std::string& how);
  void remove_subject();

  // Failures, and what takes the place of whom.
  void fail(const std::string& cause, bool is_explained);
  bool is_subject_gone() const;
  bool blames_the_step();
  bool blames_the_start();
  void give_up_starting(const std::string& failure);
  void lose_generation();
  void end_all_for_a_new_start();
  void cancel_generation();
  void go_on_stopping(const std::string& sentence);
  struct Loss {
    std::string sentence{};
    bool others_go_on = false;      // the lost one was a newcomer, or tried a place
    bool is_a_further_one = false;  // of a generation that lost one before
  };
  void replace(const Loss& loss);
  std::string limit() const;
  std::string budget_spent() const;
  void blame_place(int place, const std::string& failure);
  void leave_out(PlaceChange change, const std::string& why, const std::string& last_failure);
  void start_what_is_missing(std::chrono::milliseconds pause);
  void start_missing();
  bool try_rested_places();
  void try_places_at_once();
  bool can_others_go_on() const;
  static std::string no_place_is_free();

  // Who is in the next generation, and when it opens.
  void open_if_possible();
  bool waits_for_more() const;
  void on_nobody_left();
  bool is_allowed_unexplained();
  void open(const std::vector<int>& by_rank);
  void regroup_if_that_changes_anything();

  // The end of the run.
  bool is_ending() const;
  void end_run(int exit_code, const std::string& sentence, const std::string& reason = "");
  void conclude_if_all_are_gone();
  void finish(int exit_code, const std::string& sentence);
  template <class Predicate>
  std::string names_of(const Predicate& predicate) const {
    std::string names;
    for (const Member& member : state_.members) {
      if (predicate(member)) names += (names.empty() ? "" : ", ") + full_name_of(member);
    }
    return names;
  }
  static std::string stopped();

  // Members.
  void start_process(int place);
  void dismiss(Member& member);
  void dismiss_those_in(std::initializer_list<Stage> stages);
  void record(Member& member);
  Member* find(int id);

  // What is decided.
  void set_timer();
  void act(Action action);
  void because(const std::string& clause);
  void tell_of_place(const PlaceChange& change);

  State state_;
  const Event& event_;
  Moment now_;
  Member* subject_ = nullptr;  // whose event it is; empty for one of the run, and once it is gone
  std::vector<Action> actions_;
  std::string reason_;
  bool is_of_a_failure_ = false;
  std::vector<PlaceChange> place_changes_;
};

}  // namespace holdfast::recovery
