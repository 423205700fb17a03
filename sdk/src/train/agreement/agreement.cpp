// A flipped bit spreads to all replicas with the next gradients. So states are compared before each snapshot, savepoint
// and end of an epoch, while the wrong one can still be told from the others. Which one that is shows when all compute
// the step again: the replica whose first state differs from the one that all get then was wrong.
// docs/decisions/wrong-numbers.md

#include "train/agreement/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "train/step/checked_step.h"

namespace holdfast {
namespace {

bool are_equal(const std::vector<Digest>& digests) {
  return std::all_of(digests.begin(), digests.end(), [&](const Digest& digest) { return digest == digests.front(); });
}

std::string list_of(const std::vector<Digest>& digests) {
  std::string list;
  for (const Digest& digest : digests) list += (list.empty() ? "" : ", ") + digest.hex();
  return list;
}

}  // namespace

void Agreement::agree() {
  training_.enter(TrainingPhase::saving);
  agree(state_digest());
}

void Agreement::agree(const Digest& own) {
  agreed_ = own;
  // Alone there is nobody to differ from, unless this rank has to repeat a disputed step.
  if (training_.context->size == 1 && !dispute_) return require_finite();
  training_.enter(TrainingPhase::waiting_for_peers);
  const std::vector<Digest> all = gather(own, true);
  training_.enter(TrainingPhase::saving);
  if (are_equal(all)) {
    is_doubtful_ = false;
    require_finite();
    return settle_dispute(own);
  }
  const std::int64_t step = training_.state.step;
  if (dispute_ && dispute_->own && dispute_->step == step) {
    throw Error(ErrorCode::diverged,
                fmt::format("the replicas hold different states after step {} again, by rank: {}; a processor or a "
                            "memory of this machine is defective, run a test of its hardware",
                            step, list_of(all)));
  }
  // All digests are kept: they show later which replica was wrong.
  dispute_ = Dispute{.step = step, .own = own, .all = all};
  roll_back(step, fmt::format("the replicas hold different states after step {}, by rank: {}", step, list_of(all)));
}

// Returns the digests by rank. If the generation ends meanwhile, a rank that knows all digests acts on them: the others
// may be gone. A digest of zeros stands for one that has not arrived; no state has it.
std::vector<Digest> Agreement::gather(const Digest& own, bool may_be_cut_off) {
  std::vector<Digest> all(static_cast<std::size_t>(training_.context->size));
  StepRunner& runner = *training_.runner;
  const auto exchange = [&] {
    runner.communicator().gather_all(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)),
                                     runner.deadline());
  };
  if (!may_be_cut_off) {
    exchange();
    return all;
  }
  is_doubtful_ = true;
  try {
    exchange();
  } catch (const GenerationEnded&) {
    const bool is_known = std::find(all.begin(), all.end(), Digest{}) == all.end();
    if (is_known && are_equal(all)) is_doubtful_ = false;
    if (!is_known || are_equal(all)) throw;
  }
  return all;
}

// A NaN in an optimizer's slot shows in a gradient only some steps later. Until then it would enter each snapshot and
// savepoint, and the run could never go back to a state before it. Buffers may hold whatever the model wants. All ranks
// come to the same conclusion, since all hold the same state. docs/decisions/wrong-numbers.md
void Agreement::require_finite() {
  const std::vector<StateSpan> state = training_.state_arrays().spans();
  const std::vector<bool> wanted = must_be_finite();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const StateSpan& span = state[i];
    if (!wanted[i] || training_.trainable.memory().is_finite(span.values)) continue;
    go_back_or_end(training_.state.step,
                   fmt::format("after step {} \"{}\" is not finite", training_.state.step, span.name),
                   "lower the learning rate, or clip gradients");
  }
}

std::vector<bool> Agreement::must_be_finite() const {
  std::vector<bool> wanted;
  const FitOptions* const options = training_.running_fit;
  if (options == nullptr || options->when_not_finite == WhenNotFinite::go_on) return wanted;
  for (const StateSpan& span : training_.state_arrays().spans()) wanted.push_back(span.kind != StateKind::buffer);
  return wanted;
}

void Agreement::require_unchanged(const Digest& copied) const {
  if (copied == agreed_) return;
  throw Error(ErrorCode::diverged,
              fmt::format("the state of step {} had the digest {} on all replicas, and {} when this replica copied it; "
                          "its memory changed in between",
                          training_.state.step, agreed_.hex(), copied.hex()));
}

Snapshot Agreement::require_unchanged(Snapshot snapshot) const {
  DigestBuilder builder;
  for (const SnapshotArray& array : snapshot.arrays) builder.update(std::as_bytes(array.values));
  require_unchanged(builder.finish());
  return snapshot;
}

// After the disputed step was computed again. A replica that had another state the first time was wrong, if another one
// had the state that all have now. If none had it, the wrong numbers had reached all replicas by then, and which one
// began cannot be told.
void Agreement::settle_dispute(const Digest& agreed) {
  if (!dispute_ || training_.state.step < dispute_->step) return;
  const Dispute settled = *std::exchange(dispute_, std::nullopt);
  if (settled.step != training_.state.step || !settled.own || *settled.own == agreed) return;
  const bool can_tell = std::find(settled.all.begin(), settled.all.end(), agreed) != settled.all.end();
  if (!can_tell) {
    if (!training_.is_primary()) return;
    training_.supervision.report_event("dispute_settled",
                                       nlohmann::json{{"step", settled.step}, {"guilty", "unknown"}}.dump());
    return;
  }
  throw Error(ErrorCode::diverged, fmt::format("this replica's state after step {} had the digest {}, and {} when all "
                                               "replicas computed it again",
                                               settled.step, settled.own->hex(), agreed.hex()));
}

void Agreement::roll_back(std::int64_t step, const std::string& why) {
  log(LogLevel::warning,
      fmt::format("replica {}: {}; all go back to the last state that they agreed on", training_.context->rank, why));
  rolled_back_step_ = step;
  rolled_back_why_ = why;
  is_doubtful_ = false;
  throw RollBack{};
}

void Agreement::share_roll_back(std::int64_t step, bool has_state) {
  // Such a rank learns of the difference only now, from what the others exchange.
  const bool was_cut_off = has_state && training_.state.step == step;
  Digest own{};
  if (was_cut_off) {
    own = state_digest();
  } else if (dispute_ && dispute_->own) {
    own = *dispute_->own;
  }
  const std::vector<Digest> all = gather(own, false);
  if (was_cut_off) dispute_ = Dispute{.step = step, .own = own};
  if (dispute_) dispute_->all = all;
  rolled_back_step_ = step;
  if (training_.is_primary()) {
    const std::string why = rolled_back_why_.empty() ? "another replica found it wrong" : rolled_back_why_;
    training_.supervision.report_event("rolled_back", nlohmann::json{{"step", step}, {"why", why}}.dump());
  }
  rolled_back_why_.clear();
}

void Agreement::judge(const StepRunner::Outcome& outcome, const std::string& cause) {
  if (outcome.check && outcome.check->kind != CheckVerdict::Kind::agreed) settle_gradients(outcome);
  if (outcome.not_finite.empty()) return;
  leave_if_wrong(outcome, training_.state.step);
  on_not_finite(cause.empty() ? outcome.not_finite : fmt::format("{}; {}", outcome.not_finite, cause));
}

void Agreement::on_not_finite(const std::string& what) {
  const TrainState& state = training_.state;
  const std::string sentence =
      fmt::format("in step {} (epoch {}, batch {}) {}", state.step, state.epoch, state.batch, what);
  if (training_.running_fit->when_not_finite == WhenNotFinite::skip_step) {
    if (!training_.is_primary()) return;
    log(LogLevel::warning, fmt::format("{}; the step is skipped", sentence));
    training_.supervision.report_event("step_skipped", nlohmann::json{{"step", state.step}, {"why", what}}.dump());
    return;
  }
  go_back_or_end(state.step + 1, sentence, "look at the data of that batch, or lower the learning rate");
}

// `step` is the number of steps that led to what is not finite.
void Agreement::go_back_or_end(std::int64_t step, const std::string& sentence, const std::string& advice) {
  // The same batch gave the same result twice, so going back again would never end.
  const bool is_repeated = dispute_ && !dispute_->own && dispute_->step == step;
  const bool can_go_back = training_.is_supervised() && training_.running_fit->when_not_finite != WhenNotFinite::stop;
  if (is_repeated || !can_go_back) {
    throw Error(ErrorCode::not_finite,
                fmt::format("{}{}; {}", sentence, is_repeated ? ", again after the replicas went back" : "", advice));
  }
  dispute_ = Dispute{.step = step};
  roll_back(step, sentence);
}

// Nothing of the step was applied, since its gradients differed again. A wrong state gives wrong gradients however
// often they are computed, so states are compared first.
void Agreement::settle_gradients(const StepRunner::Outcome& outcome) {
  agree();
  const TrainState& state = training_.state;
  const CheckVerdict& verdict = *outcome.check;
  if (verdict.kind == CheckVerdict::Kind::outvoted && verdict.spares_somebody(training_.context->size)) {
    leave_if_wrong(outcome, state.step);
    // The other ranks wait here until the one that was outvoted has left, which ends the generation.
    training_.enter(TrainingPhase::waiting_for_peers);
    training_.runner->communicator().barrier(training_.runner->deadline());
  }
  throw Undecided(fmt::format(
      "the gradients of step {} (epoch {}, batch {}) differ between the replicas that computed them, also when all "
      "computed them again: {}; either a processor or a memory of this machine is defective, or compute_gradients() or "
      "a map() of the data is not a function of its arguments. FitOptions::check_gradients.every = 0 turns the check "
      "off",
      state.step, state.epoch, state.batch, outcome.check_reports));
}

int Agreement::checked_shards_in(std::int64_t step) const {
  return checked_shards(training_.running_fit->check_gradients, step);
}

void Agreement::leave_if_wrong(const StepRunner::Outcome& outcome, std::int64_t step) {
  const Replica::Context& context = *training_.context;
  if (!outcome.check || !outcome.check->is_wrong(context.rank)) return;
  const ShardAssignment assignment =
      StepRunner::assignment_of_step(context, static_cast<int>(training_.running_fit->accumulate));
  std::string sentence = fmt::format("this replica computed gradients of step {} wrongly:", step);
  for (const WrongDigest& wrong : outcome.check->wrong) {
    if (wrong.rank != context.rank) continue;
    const auto shards = drawn_shards_of(context, assignment, wrong.owner, step, checked_shards_in(step));
    const nlohmann::json detail{{"step", step},
                                {"rank", wrong.rank},
                                {"owner", wrong.owner},
                                {"shards", shards},
                                {"digest", wrong.digest.hex()},
                                {"right", wrong.right.hex()},
                                {"reports", outcome.check_reports}};
    training_.supervision.report_event("wrong_gradient", detail.dump());
    sentence +=
        fmt::format(" {} instead of {} for shards of rank {};", wrong.digest.hex(), wrong.right.hex(), wrong.owner);
  }
  sentence.back() = '.';
  // If every replica was wrong, each was so only for a moment, and no other replica has a better state.
  if (outcome.check->spares_somebody(context.size)) throw Error(ErrorCode::diverged, sentence);
  log(LogLevel::warning, fmt::format("{} The step was computed again", sentence));
}

}  // namespace holdfast
