// Wrong numbers: replicas whose states or gradients differ, and steps that are not finite.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "train/fit/session.h"

namespace holdfast {

Digest Trainer::Session::state_digest() const {
  std::vector<std::span<const float>> arrays;
  for (const StateSpan& span : trainable_.state()) arrays.push_back(span.values);
  return trainable_.memory().digest_of(arrays);
}

void Trainer::Session::agree() {
  supervision_.enter(TrainingPhase::saving, state_.step);
  agree(state_digest());
}

void Trainer::Session::agree(const Digest& own) {
  agreed_ = own;
  if (place_->size == 1 && !dispute_) return require_finite();
  supervision_.enter(TrainingPhase::waiting_for_peers, state_.step);
  is_doubtful_ = true;
  std::vector<Digest> all(static_cast<std::size_t>(place_->size));
  const auto is_agreed = [&] {
    return std::all_of(all.begin(), all.end(), [&](const Digest& digest) { return digest == all.front(); });
  };
  try {
    runner_->communicator().gather_all(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)),
                                       runner_->deadline());
  } catch (const GenerationEnded&) {
    // Who knows that the states differ may be the one that died. No state has the digest that is all zeros.
    const bool is_known = std::find(all.begin(), all.end(), Digest{}) == all.end();
    if (is_known && is_agreed()) is_doubtful_ = false;
    if (!is_known || is_agreed()) throw;
  }
  supervision_.enter(TrainingPhase::saving, state_.step);
  if (is_agreed()) {
    is_doubtful_ = false;
    require_finite();
    return settle_dispute(own);
  }
  std::string digests;
  for (const Digest& digest : all) digests += (digests.empty() ? "" : ", ") + digest.hex();
  if (dispute_ && dispute_->own && dispute_->step == state_.step) {
    throw Error(ErrorCode::diverged, "the replicas disagree about step " + std::to_string(state_.step) +
                                         " again, by rank: " + digests +
                                         "; one of the machine's parts computes wrongly");
  }
  dispute_ = Dispute{.step = state_.step, .own = own, .all = all};
  roll_back(state_.step,
            "the replicas hold different states behind step " + std::to_string(state_.step) + ", by rank: " + digests);
}

// What is NaN in an optimizer's slot shows in a gradient only some steps later, and until then in every snapshot and
// savepoint, which the run could never get behind again. Buffers may hold whatever the model wants there. On each rank
// with the same outcome: all hold the same state.
void Trainer::Session::require_finite() {
  const std::vector<StateSpan> state = trainable_.state();
  const std::vector<bool> wanted = must_be_finite();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const StateSpan& span = state[i];
    if (!wanted[i] || trainable_.memory().is_finite(span.values)) continue;
    go_back_or_end(state_.step, "behind step " + std::to_string(state_.step) + " \"" + span.name + "\" is not finite",
                   "lower the learning rate, or let gradients be clipped", *running_fit_);
  }
}

// By array of the state; none where nobody minds.
std::vector<bool> Trainer::Session::must_be_finite() const {
  std::vector<bool> wanted;
  if (running_fit_ == nullptr || running_fit_->when_not_finite == WhenNotFinite::go_on) return wanted;
  for (const StateSpan& span : trainable_.state()) wanted.push_back(span.kind != StateKind::buffer);
  return wanted;
}

// Between the comparison and a copy the state may have changed, which nobody but this replica has seen.
void Trainer::Session::require_unchanged(const Digest& copied) const {
  if (copied == agreed_) return;
  throw Error(ErrorCode::diverged, "this replica's state of step " + std::to_string(state_.step) + " was " +
                                       agreed_.hex() + ", as the others', and " + copied.hex() + " when it was copied");
}

Snapshot Trainer::Session::agreed(Snapshot snapshot) const {
  DigestBuilder builder;
  for (const SnapshotArray& array : snapshot.arrays) builder.update(std::as_bytes(array.values));
  require_unchanged(builder.finish());
  return snapshot;
}

// Behind the step that was disputed: whoever had another state than computing it again gives, where a peer had that
// one, is not to be trusted. Where nobody had it, the wrong numbers of one had reached the others by then, and who
// began cannot be told.
void Trainer::Session::settle_dispute(const Digest& agreed) {
  if (!dispute_ || state_.step < dispute_->step) return;
  const Dispute settled = *std::exchange(dispute_, std::nullopt);
  if (settled.step != state_.step || !settled.own || *settled.own == agreed) return;
  const bool can_tell = std::find(settled.all.begin(), settled.all.end(), agreed) != settled.all.end();
  if (!can_tell) {
    if (place_->rank != 0) return;
    supervision_.report_event("dispute_settled", nlohmann::json{{"step", settled.step}, {"guilty", "unknown"}}.dump());
    return;
  }
  throw Error(ErrorCode::diverged, "this replica's state behind step " + std::to_string(settled.step) + " was " +
                                       settled.own->hex() + ", and " + agreed.hex() + " when all computed it again");
}

void Trainer::Session::roll_back(std::int64_t step, const std::string& why) {
  log(LogLevel::warning,
      "replica " + std::to_string(place_->rank) + ": " + why + "; all go back to the last state that they agreed on");
  rolled_back_step_ = step;
  rolled_back_why_ = why;
  is_doubtful_ = false;
  throw RollBack{};
}

void Trainer::Session::on_not_finite(const std::string& what, const FitOptions& options) {
  const std::string sentence = "in step " + std::to_string(state_.step) + " (epoch " + std::to_string(state_.epoch) +
                               ", batch " + std::to_string(state_.batch) + ") " + what;
  if (options.when_not_finite == WhenNotFinite::skip_step) {
    if (place_->rank != 0) return;
    log(LogLevel::warning, sentence + "; the step is skipped");
    supervision_.report_event("step_skipped", nlohmann::json{{"step", state_.step}, {"why", what}}.dump());
    return;
  }
  go_back_or_end(state_.step + 1, sentence, "look at the data of that batch, or lower the learning rate", options);
}

// `step` steps led to what is not finite.
void Trainer::Session::go_back_or_end(std::int64_t step, const std::string& sentence, const std::string& advice,
                                      const FitOptions& options) {
  const bool is_repeated = dispute_ && !dispute_->own && dispute_->step == step;
  const bool can_roll_back = !place_->run_directory.empty() && options.when_not_finite != WhenNotFinite::stop;
  if (is_repeated || !can_roll_back) {
    throw Error(ErrorCode::not_finite,
                sentence + (is_repeated ? ", again after the replicas went back" : "") + "; " + advice);
  }
  dispute_ = Dispute{.step = step};
  roll_back(step, sentence);
}

void Trainer::Session::settle_gradients(const StepRunner::Outcome& outcome, const FitOptions& options) {
  // Who has a wrong state computes wrong gradients, however often: that is settled first, and sends all back.
  agree();
  const CheckVerdict& verdict = *outcome.check;
  if (verdict.kind == CheckVerdict::Kind::outvoted && verdict.spares_somebody(place_->size)) {
    leave_if_wrong(outcome, state_.step, options);
    // The end of whoever leaves ends this wait.
    supervision_.enter(TrainingPhase::waiting_for_peers, state_.step);
    runner_->communicator().barrier(runner_->deadline());
  }
  throw Undecided("the gradients of step " + std::to_string(state_.step) + " (epoch " + std::to_string(state_.epoch) +
                  ", batch " + std::to_string(state_.batch) +
                  ") differ between those who computed them, also when all did so again: " + outcome.check_reports +
                  "; one of the machine's parts computes wrongly, or compute_gradients() or a map() of the data is no "
                  "function of what it is given; check_gradients.every = 0 would not look");
}

void Trainer::Session::leave_if_wrong(const StepRunner::Outcome& outcome, std::int64_t step,
                                      const FitOptions& options) {
  if (!outcome.check || !outcome.check->is_wrong(place_->rank)) return;
  std::string sentence = "this replica computed gradients of step " + std::to_string(step) + " wrongly:";
  for (const WrongDigest& wrong : outcome.check->wrong) {
    if (wrong.rank != place_->rank) continue;
    const auto shards = runner_->drawn_shards_of(wrong.owner, step, checked_shards(options.check_gradients, step));
    const nlohmann::json detail{{"step", step},
                                {"rank", wrong.rank},
                                {"owner", wrong.owner},
                                {"shards", shards},
                                {"digest", wrong.digest.hex()},
                                {"right", wrong.right.hex()},
                                {"reports", outcome.check_reports}};
    supervision_.report_event("wrong_gradient", detail.dump());
    sentence += " of rank " + std::to_string(wrong.owner) + "'s " + wrong.digest.hex() + " instead of " +
                wrong.right.hex() + ";";
  }
  sentence.back() = '.';
  // Where nobody else is left to keep the state, it was wrong for a moment only.
  if (outcome.check->spares_somebody(place_->size)) throw Error(ErrorCode::diverged, sentence);
  log(LogLevel::warning, sentence + " The step was computed again");
}

}  // namespace holdfast
