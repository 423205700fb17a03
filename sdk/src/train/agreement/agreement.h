#pragma once

// Whether all replicas hold the same, finite numbers. A replica whose state or gradients were wrong leaves the run. If
// it cannot be found which one was wrong, all go back to the last state that they agreed on.
// docs/decisions/wrong-numbers.md

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/base/digest.h"
#include "train/state/snapshot.h"
#include "train/step/training.h"

namespace holdfast {

// Thrown through a call of the Trainer: the state is given up for the last one that all replicas agreed on.
struct RollBack {};

class Agreement {
 public:
  explicit Agreement(Training& training) : training_(training) {}

  // Called by all ranks at the same point. Throws RollBack unless all hold the same state and it is finite, and
  // Error{diverged} on a replica that turns out to have been wrong before.
  void agree();
  // The same, if `own`, the digest of this rank's state, is known.
  void agree(const Digest& own);
  bool is_disputed(std::int64_t step) const { return dispute_ && dispute_->step == step; }
  bool is_disputed() const { return dispute_.has_value(); }

  // The digest of the state that was compared last.
  const Digest& agreed_digest() const { return agreed_; }
  // Throws Error{diverged} unless a copy of the state has that digest: it may have changed since it was compared.
  void require_unchanged(const Digest& copied) const;
  Snapshot require_unchanged(Snapshot snapshot) const;
  // By array of the state: whether it must be finite. For snapshots that are checked elsewhere; empty if fit() keeps
  // what is not finite.
  std::vector<bool> must_be_finite() const;

  // Judges a step before it counts. Throws if its gradients differed twice, or if it is not finite and the options of
  // fit() do not skip it. `cause` is what a sample of the batch has to do with that, the same on every rank, for the
  // sentence that says so; empty: nothing.
  void judge(const StepRunner::Outcome& outcome, const std::string& cause = "");
  // After the step counts: throws Error{diverged} on a rank that computed its gradients wrongly, while another rank has
  // the state.
  void leave_if_wrong(const StepRunner::Outcome& outcome, std::int64_t step);

  // What ranks exchange when a generation begins.
  bool is_doubtful() const { return is_doubtful_; }                    // the comparison of this state was cut off
  std::int64_t rolled_back_step() const { return rolled_back_step_; }  // whose state was wrong; 0: no step
  // Some ranks may know that the states of `step` differ, and others were cut off before. All exchange what they know.
  // Called by all ranks of the generation.
  void share_roll_back(std::int64_t step, bool has_state);
  void forget_roll_back() { rolled_back_step_ = 0; }
  void forget_doubt() { is_doubtful_ = false; }

 private:
  // A state that differed, or a step that was not finite, until it has been computed again.
  struct Dispute {
    std::int64_t step = 0;
    std::optional<Digest> own{};  // empty: the step was not finite
    std::vector<Digest> all{};    // by rank
  };

  Digest state_digest() const { return training_.trainable.memory().digest_of(training_.arrays()); }
  std::vector<Digest> gather(const Digest& own, bool may_be_cut_off);
  void require_finite();
  void settle_dispute(const Digest& agreed);
  void settle_gradients(const StepRunner::Outcome& outcome);
  void on_not_finite(const std::string& what);
  [[noreturn]] void go_back_or_end(std::int64_t step, const std::string& sentence, const std::string& advice);
  [[noreturn]] void roll_back(std::int64_t step, const std::string& why);
  int checked_shards_in(std::int64_t step) const;

  Training& training_;
  std::optional<Dispute> dispute_;
  bool is_doubtful_ = false;
  std::int64_t rolled_back_step_ = 0;
  std::string rolled_back_why_;  // empty if another rank found it
  Digest agreed_{};
};

}  // namespace holdfast
