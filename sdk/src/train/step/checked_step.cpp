// The digests of both computations are part of the sum of the step, so a check that finds nothing costs no message of
// its own. Which rank is right is found by computing again, with samples that are read anew: the samples themselves may
// be what is wrong. docs/decisions/wrong-numbers.md

#include "train/step/checked_step.h"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace holdfast {

std::vector<int> drawn_shards_of(const Replica::Context& context, const ShardAssignment& assignment, int rank,
                                 std::int64_t step, int count) {
  return drawn_shards(context.seed, step, assignment.of(rank), count);
}

CheckReport StepCheck::report(int first_shard) const {
  const auto combined = [](const auto& digests) { return digest(std::as_bytes(std::span(digests))); };
  CheckReport report;
  std::vector<Digest> of_own;
  for (const int shard : own) of_own.push_back(own_digests[static_cast<std::size_t>(shard - first_shard)]);
  report.own = combined(of_own);
  for (int distance = 1; distance <= recomputations; ++distance) {
    std::vector<Digest> of_before;
    for (const Recomputation& other : others) {
      if (other.distance == distance) of_before.push_back(other.digest);
    }
    report.of_before[static_cast<std::size_t>(distance - 1)] = combined(of_before);
  }
  return report;
}

namespace {

// The step of CheckedStep, once: it prepares its check before it computes, and agrees only where the check says so.
class DisputableStep final : public StepWrapper {
 public:
  using Prepare = std::function<StepCheck()>;
  // What is to be said of a sum, which may be disputed.
  using Agree = std::function<StepOutcome(StepSum& sum, const StepCheck& check, Step& inner)>;

  DisputableStep(StepArithmetic& arithmetic, Step& watched, Prepare prepare, Agree agree)
      : StepWrapper(watched), arithmetic_(arithmetic), prepare_(std::move(prepare)), agree_(std::move(agree)) {}

  void forward_and_backward() override {
    check_ = prepare_();
    arithmetic_.compute_also(*check_);
    inner().forward_and_backward();
  }
  StepOutcome agree(StepSum& sum) override { return agree_(sum, *check_, inner()); }

 private:
  StepArithmetic& arithmetic_;
  const Prepare prepare_;
  const Agree agree_;
  std::optional<StepCheck> check_;
};

}  // namespace

StepRunner::Outcome CheckedStep::train(const Batch& batch) {
  std::optional<std::vector<CheckReport>> disputed;
  const auto agree = [&](StepSum& sum, const StepCheck& check, Step& inner) {
    // The sum is the same on every rank, so all of them come to the same conclusion without a message.
    if (is_agreed(runner_.layout().check(sum.block.tail))) return inner.agree(sum);
    disputed = gather_reports(check);
    return StepOutcome();
  };
  StepArithmetic arithmetic(runner_, batch, step_, options_);
  WatchedStep watched = arithmetic.watched();
  DisputableStep once(
      arithmetic, watched, [&] { return prepare(&batch); }, agree);
  StepOutcome outcome = carry_out(once);
  // Requests are not lost: each rank makes its own again.
  return disputed ? train_again(*disputed) : outcome;
}

// The update is applied only if all agree now. By then every rank knows what the others computed.
StepRunner::Outcome CheckedStep::train_again(const std::vector<CheckReport>& first) {
  StepCheck prepared = prepare(nullptr);
  // Own samples are read anew as well: a flipped bit may be in the buffer that the first time used. What the sums are
  // divided by may have come from such a buffer too. Each rank gets here, so all reduce it again.
  const LoadedShards loaded = options_.load(shards_.computation->shards());
  // The exchange of reports overwrites the memory of the sum.
  std::shared_ptr<float[]> gradients;
  std::vector<float> tail;
  const auto agree = [&](StepSum& sum, const StepCheck& check, Step& inner) {
    MemorySpace& memory = runner_.trainable().memory();
    const std::size_t count = runner_.layout().gradient_floats();
    gradients = memory.allocate(count);
    memory.copy(sum.block.gradients, {gradients.get(), count});
    tail.assign(sum.block.tail.begin(), sum.block.tail.end());
    sum.block = {.gradients = {gradients.get(), count}, .tail = tail};

    const std::vector<CheckReport> again = gather_reports(check);
    const CheckVerdict verdict = judge(first, again);
    StepOutcome outcome = verdict.kind == CheckVerdict::Kind::agreed ? inner.agree(sum) : runner_.outcome_of(sum);
    const int size = runner_.context().size;
    outcome.check = verdict;
    // Both times, because a rank that was wrong once may agree with the others the second time.
    outcome.check_reports = fmt::format("first {}; then {}", describe(first, recomputations(false, size)),
                                        describe(again, recomputations(true, size)));
    return outcome;
  };
  StepArithmetic arithmetic(runner_, loaded.batch(), step_, options_);
  WatchedStep watched = arithmetic.watched();
  DisputableStep once_more(
      arithmetic, watched, [&] { return std::move(prepared); }, agree);
  return carry_out(once_more);
}

StepCheck CheckedStep::prepare(const Batch* own) const {
  const Replica::Context& context = runner_.context();
  context.supervision->enter(TrainingPhase::reading_data, step_);
  const ShardRange local = shards_.computation->shards();
  const auto drawn = [&](int rank) {
    return drawn_shards_of(context, shards_.assignment, rank, step_, options_.checked_shards);
  };
  StepCheck check{.recomputations = recomputations(own == nullptr, context.size),
                  .own = drawn(context.rank),
                  .own_digests = std::vector<Digest>(static_cast<std::size_t>(local.count())),
                  .others = {}};
  // In a ring, so every rank computes as many shards more as any other, and none waits longer.
  for (int distance = 1; distance <= check.recomputations; ++distance) {
    const int rank = rank_before(context.rank, distance, context.size);
    for (const int shard : drawn(rank)) {
      // A lone replica has its own samples at hand. To load those that went to a device unchanged, and to send them
      // once more, takes as long as many steps.
      if (rank == context.rank && own != nullptr && own->is_on_device) {
        check.others.push_back({.distance = distance, .index = static_cast<std::size_t>(shard - local.begin)});
      } else {
        check.others.push_back({.distance = distance, .samples = options_.load({shard, shard + 1})});
      }
    }
  }
  return check;
}

// One digest a call: a communicator's slots may be as small as that.
std::vector<CheckReport> CheckedStep::gather_reports(const StepCheck& check) {
  const CheckReport own = check.report(shards_.computation->shards().begin);
  std::vector<CheckReport> reports(static_cast<std::size_t>(runner_.context().size));
  const auto gather = [&](const Digest& digest, const auto& member_of) {
    std::vector<Digest> all(reports.size());
    shards_.communicator->gather_all(std::as_bytes(std::span(&digest, 1)), std::as_writable_bytes(std::span(all)),
                                     runner_.deadline());
    for (std::size_t rank = 0; rank < all.size(); ++rank) member_of(reports[rank]) = all[rank];
  };
  gather(own.own, [](CheckReport& report) -> Digest& { return report.own; });
  for (std::size_t i = 0; i < own.of_before.size(); ++i) {
    gather(own.of_before[i], [i](CheckReport& report) -> Digest& { return report.of_before[i]; });
  }
  return reports;
}

}  // namespace holdfast
