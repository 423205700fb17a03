// A run that gets more epochs goes on as one that had them from the start. docs/decisions/training.md

#include <algorithm>

#include "train/fit/session.h"

namespace holdfast {

// On every rank alike, since all have the same state.
void Trainer::Session::give_more_epochs(std::size_t call, std::int64_t epochs) {
  if (epochs <= record_of(call).epochs) return;
  const auto ended_by_its_epochs = [](const CallRecord& record) {
    return record.is_finished && !record.is_ended_by_callback &&
           static_cast<std::int64_t>(record.history.size()) == record.epochs;
  };
  if (ended_by_its_epochs(record_of(call))) {
    const auto later = state_.calls.begin() + static_cast<std::ptrdiff_t>(call) + 1;
    const bool has_later_fit =
        std::any_of(later, state_.calls.end(), [](const CallRecord& record) { return record.kind == "fit"; });
    if (has_later_fit) go_back_before_later_fit(call);
  }
  CallRecord& record = record_of(call);
  if (ended_by_its_epochs(record)) {
    // Later calls have evaluated weights that are now trained further.
    state_.calls.resize(call + 1);
    CallRecord& reopened = record_of(call);
    reopened.is_finished = false;
    state_.epoch = reopened.epochs;
    state_.batch = 0;
    is_epoch_begun_ = false;
    is_extended_ = true;
  }
  record_of(call).epochs = epochs;
}

void Trainer::Session::go_back_before_later_fit(std::size_t call) {
  wanted_end_ = call;
  has_state_ = false;
  try {
    load_state();
  } catch (const GenerationEnded&) {
    enter_generation();
  }
  wanted_end_.reset();
}

}  // namespace holdfast
