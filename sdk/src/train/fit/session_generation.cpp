// The way into a generation: its ranks tell each other what state they hold, and all get the newest of them.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "holdfast/base/log.h"
#include "train/fit/session.h"
#include "train/state/state_finder.h"

namespace holdfast {

void Trainer::Session::join() {
  if (!std::exchange(has_joined_, true)) enter_generation();
}

void Trainer::Session::join(const Dataset& data, WarmUp what) {
  if (!has_joined_) sample_ways(data);
  if (!has_joined_ && !place_->run_directory.empty()) warm_up(*place_, trainable_, data, prepared_workers_, what);
  join();
}

void Trainer::Session::enter_generation() {
  is_stop_requested_ = false;
  is_regroup_requested_ = false;
  is_comparison_requested_ = false;
  is_savepoint_requested_ = false;
  for (;;) {
    try {
      if (runner_ && !trainable_.memory().is_host()) supervision_.regroup();
      runner_.reset();
      // Only the one that writes its savepoints can close a fit().
      if (is_closing_ && place_->rank != 0) has_state_ = false;
      supervision_.reach(FaultPoint::rendezvous, -1);
      place_->enter_generation(has_state_ ? state_.step : -1);
      prepare_workers();
      runner_.emplace(*place_, trainable_);
      settle_state();
      tell_of_other_order();
      // Whoever waits for nobody any more is looked at again.
      return supervision_.enter(TrainingPhase::callbacks, state_.step);
    } catch (const GenerationEnded& ended) {
      log(LogLevel::debug, std::string("replica: ") + ended.what() + "; it waits for the next");
    }
  }
}

// Before the first step whose bits are others than those of a run without failures.
void Trainer::Session::tell_of_other_order() {
  const bool depends_on_replicas = place_->reduction == Reduction::fastest && !trainable_.memory().is_host();
  if (!depends_on_replicas || place_->rank != 0 || place_->deal() == place_->first_deal()) return;
  const std::string replicas = std::to_string(place_->size);
  log(LogLevel::warning, "from step " + std::to_string(state_.step) + " on gradients are added over " + replicas +
                             " replicas, in another order than by the " + std::to_string(place_->first_replicas) +
                             " that the run began with: with Reduction::fastest it ends with other bits than it would "
                             "have without failures");
  supervision_.report_event(
      "sums_reordered",
      nlohmann::json{{"step", state_.step}, {"replicas", place_->size}, {"first_replicas", place_->first_replicas}}
          .dump());
}

Trainer::Session::Position Trainer::Session::position() const {
  if (!has_state_) return {};
  const auto finished =
      std::count_if(state_.calls.begin(), state_.calls.end(), [](const auto& call) { return call.is_finished; });
  return {.has_state = 1,
          .calls = static_cast<std::int64_t>(state_.calls.size()),
          .finished_calls = finished,
          .epoch = state_.epoch,
          .batch = state_.batch,
          .step = state_.step,
          .is_epoch_begun = is_epoch_begun_ ? 1 : 0,
          .is_closed = is_closing_ ? 0 : 1};
}

std::vector<Trainer::Session::Standing> Trainer::Session::exchange_standings() {
  const Standing own{
      .position = position(), .is_doubtful = is_doubtful_ ? 1 : 0, .rolled_back_step = rolled_back_step_};
  std::vector<Standing> all(static_cast<std::size_t>(place_->size));
  runner_->communicator().gather_all(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)),
                                     runner_->deadline());
  return all;
}

void Trainer::Session::settle_state() {
  if (place_->run_directory.empty()) {
    has_state_ = true;
    return;
  }
  supervision_.enter(TrainingPhase::waiting_for_peers, state_.step);
  std::vector<Standing> standings = exchange_standings();
  drop_disputed_state(standings);
  const bool has_any = std::any_of(standings.begin(), standings.end(),
                                   [](const Standing& standing) { return standing.position.has_state != 0; });
  if (has_any) {
    share_newest_state(standings);
  } else {
    load_state();
  }
  rolled_back_step_ = 0;
}

// Some ranks may have learned that the states differ, and others been cut off before. What any of them found wrong is
// wrong for all; all but those who were cut off keep what they know of who had which state.
void Trainer::Session::drop_disputed_state(std::vector<Standing>& standings) {
  std::int64_t step = 0;
  for (const Standing& standing : standings) step = std::max(step, standing.rolled_back_step);
  if (step == 0) return;
  const bool was_cut_off = has_state_ && state_.step == step;
  Digest own{};
  if (was_cut_off) {
    own = state_digest();
  } else if (dispute_ && dispute_->own) {
    own = *dispute_->own;
  }
  std::vector<Digest> all(standings.size());
  runner_->communicator().gather_all(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)),
                                     runner_->deadline());
  if (was_cut_off) dispute_ = Dispute{.step = step, .own = own};
  if (dispute_) dispute_->all = all;
  rolled_back_step_ = step;
  if (place_->rank == 0) {
    const std::string why = rolled_back_why_.empty() ? "another replica found it wrong" : rolled_back_why_;
    supervision_.report_event("rolled_back", nlohmann::json{{"step", step}, {"why", why}}.dump());
  }
  rolled_back_why_.clear();
  const bool is_disputed = state_.step >= step - 1;
  has_state_ = has_state_ && !is_disputed;
  if (!has_state_) finish_savepoints_under_way();
  standings = exchange_standings();
}

// Before anybody looks for savepoints, and removes what looks like a dead writer's leftovers. They are of states that
// were agreed on. So is a snapshot that is still on its way from the device.
void Trainer::Session::finish_savepoints_under_way() {
  memory_keeper_.finish();
  while_storage_fails([&] { flush_savepoints(); });
  supervision_.enter(TrainingPhase::waiting_for_peers, state_.step);
}

// Of those who have come furthest. A state whose comparison was cut off before anybody could know how it ends is
// compared again, where there is another: alone it is as good as one between two comparisons.
void Trainer::Session::share_newest_state(const std::vector<Standing>& standings) {
  const auto newest = std::max_element(standings.begin(), standings.end(),
                                       [](const Standing& a, const Standing& b) { return a.position < b.position; });
  const bool is_doubtful = std::any_of(standings.begin(), standings.end(), [&](const Standing& standing) {
    return standing.position == newest->position && standing.is_doubtful != 0;
  });
  share_state(static_cast<int>(newest - standings.begin()), position() < newest->position);
  is_doubtful_ = false;
  if (is_doubtful) agree();
}

// From the watchdog's memory or a savepoint, by rank 0; or the state of step 0.
void Trainer::Session::load_state() {
  std::string text;
  if (place_->rank == 0) {
    supervision_.enter(TrainingPhase::starting, state_.step);
    StateFinder finder(*place_, trainable_, state_);
    finder.check_arithmetic();
    text = wanted_end_ ? finder.find_before_later_fit(*wanted_end_) : finder.find();
    supervision_.enter(TrainingPhase::waiting_for_peers, state_.step);
  }
  text = share_text(std::move(text), 0);
  if (text.empty()) return begin_anew();
  share_arrays(0, true);
  take_state(text);
}

// The state of step 0, also where another was given up.
void Trainer::Session::begin_anew() {
  state_.step = 0;
  state_.epoch = 0;
  state_.batch = 0;
  state_.calls.clear();
  state_.callbacks.clear();
  trainable_.initialize(place_->seed);
  is_epoch_begun_ = false;
  is_end_asked_ = false;
  is_closing_ = false;
  has_state_ = true;
  has_taken_state_ = true;
}

// What a survivor brings along: the arrays, and the rest as JSON.
void Trainer::Session::share_state(int root, bool takes) {
  if (!takes && running_fit_ != nullptr) collect_callback_states(*running_fit_);
  std::string text;
  if (place_->rank == root) {
    text = {is_epoch_begun_ ? '1' : '0', is_end_asked_ ? '1' : '0', is_closing_ ? '1' : '0'};
    text += to_json(state_);
  }
  text = share_text(std::move(text), root);
  has_state_ = has_state_ && !takes;
  share_arrays(root, takes);
  if (!takes) return;
  take_state(text.substr(3));
  is_epoch_begun_ = text[0] == '1';
  is_end_asked_ = text[1] == '1';
  is_closing_ = text[2] == '1';
}

std::string Trainer::Session::share_text(std::string text, int root) {
  std::uint64_t bytes = text.size();
  runner_->communicator().broadcast(std::as_writable_bytes(std::span(&bytes, 1)), root, true, runner_->deadline());
  text.resize(bytes);
  runner_->communicator().broadcast(std::as_writable_bytes(std::span(text)), root, true, runner_->deadline());
  return text;
}

void Trainer::Session::share_arrays(int root, bool takes) {
  const std::vector<StateSpan> spans = trainable_.state();
  for (std::size_t i = 0; i < spans.size(); ++i) {
    // Behind the first one: who fails here leaves replicas behind that have half a state.
    if (i == 1) supervision_.reach(FaultPoint::broadcast, -1);
    runner_->communicator().broadcast_arrays(std::span(&spans[i].values, 1), root, takes, runner_->deadline());
  }
}

void Trainer::Session::take_state(const std::string& text) {
  state_ = train_state_from_json(text, "the state that another replica sent");
  is_epoch_begun_ = false;
  is_end_asked_ = false;
  is_closing_ = false;
  has_state_ = true;
  has_taken_state_ = true;
}

}  // namespace holdfast
