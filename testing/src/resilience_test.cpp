// Judges runs under faults. Some faults may end a run or change its weights, and docs/faults.md says which; the rules
// for these are here. A run that met not every fault shows nothing, so callers also look at faults_struck. See
// docs/decisions/testing.md.

#include "holdfast/testing/resilience_test.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/recovery/fault_plan.h"
#include "holdfast/recovery/watchdog.h"
#include "run_record.h"

namespace holdfast::resilience {
namespace {

using recovery::CorruptionTarget;
using recovery::Fault;
using recovery::FaultKind;

// docs/recovery.md: when a step fails in three generations, the step is to blame and not the processes.
constexpr int kFailuresOfPoison = 3;
// The same holds for a step whose numbers are wrong in two generations.
constexpr int kCorruptionsOfPoison = 2;

std::vector<Fault> parsed(const std::vector<std::string>& specifications) {
  std::vector<Fault> faults;
  for (const std::string& text : specifications) faults.push_back(recovery::parse_fault(text, kMostRanks));
  return faults;
}

bool is_of_disk(const Fault& fault) {
  return fault.kind == FaultKind::full_disk || fault.kind == FaultKind::io_error;
}

bool is_corruption(const Fault& fault) {
  return fault.kind == FaultKind::nan || fault.kind == FaultKind::flip;
}

bool is_one_step_to_blame(const std::vector<Fault>& faults) {
  std::map<std::int64_t, int> faults_of_step;
  for (const Fault& fault : faults) {
    // Faults without a step strike outside of steps, and no step is blamed for them.
    if (fault.step) ++faults_of_step[*fault.step];
  }
  return std::any_of(faults_of_step.begin(), faults_of_step.end(),
                     [](const auto& entry) { return entry.second >= kFailuresOfPoison; });
}

bool may_stop(const std::vector<Fault>& faults) {
  return std::any_of(faults.begin(), faults.end(), is_of_disk) || is_one_step_to_blame(faults) ||
         std::count_if(faults.begin(), faults.end(), is_corruption) >= kCorruptionsOfPoison;
}

// Whether no other replica was left to compare states with: the others died in the same step or the next, as far as the
// journal says.
bool was_seen_by_nobody_else(const InjectedCorruption& corruption, const RunResult& run) {
  std::set<int> dead;
  for (const LostReplica& lost : run.lost) {
    const bool is_beside = lost.generation == corruption.generation && lost.rank != corruption.rank;
    if (is_beside && std::abs(lost.step - corruption.step) <= 1) dead.insert(lost.rank);
  }
  return corruption.replicas > 0 && corruption.replicas - static_cast<int>(dead.size()) <= 1;
}

// A wrong but finite gradient becomes part of the sum that all replicas apply, unless it is one of those that are
// computed twice. A wrong state of the only replica that is left cannot be compared with another one.
bool may_change_weights(const std::vector<Fault>& faults, const RunResult& run) {
  return std::any_of(faults.begin(), faults.end(), [&](const Fault& fault) {
    if (fault.kind != FaultKind::flip) return false;
    if (fault.target == CorruptionTarget::gradient) return true;
    return std::any_of(run.corruptions.begin(), run.corruptions.end(), [&](const InjectedCorruption& corruption) {
      return (!fault.step || *fault.step == corruption.step) && was_seen_by_nobody_else(corruption, run);
    });
  });
}

std::string describe(const std::optional<FinishedFit>& fit) {
  return fit ? fmt::format("weights {} at step {}", fit->weights_digest, fit->step) : "no finished fit";
}

std::string describe_end(const RunResult& run) {
  return fmt::format("exit code {}: {}", run.exit_code, run.sentence);
}

// What failed in an undisturbed run; empty if nothing did.
std::string describe_own_failures(const RunResult& run) {
  if (run.lost.empty()) return run.roll_backs == 0 ? "" : "went back to an earlier state";
  const LostReplica& first = run.lost.front();
  const std::string more = run.lost.size() == 1 ? "" : fmt::format(" and {} more", run.lost.size() - 1);
  return fmt::format("lost rank {} at step {} ({}){}", first.rank, first.step, first.cause, more);
}

std::pair<Verdict, std::string> verdict_of(const Case& test, const RunResult& undisturbed, const RunResult& run) {
  if (!run.processes_left.empty()) {
    return {Verdict::processes_left, fmt::format("{} of its processes lived on after it had ended with {}",
                                                 run.processes_left.size(), describe_end(run))};
  }
  if (run.is_out_of_time) {
    return {Verdict::out_of_time,
            fmt::format("killed after {} s; it had lost {} replicas", run.wall_time.count() / 1000, run.lost.size())};
  }
  const std::vector<Fault> faults = parsed(test.faults);
  if (run.exit_code != 0) {
    // A stop is documented only if the run itself decided on it, said why, and had faults that allow it.
    const bool is_report = (run.exit_code == recovery::kExitUnrecoverable || run.exit_code == recovery::kExitGaveUp) &&
                           !run.sentence.empty() && may_stop(faults);
    return {is_report ? Verdict::documented_stop : Verdict::ended, describe_end(run)};
  }
  if (run.last_fit == undisturbed.last_fit) return {Verdict::same_digest, describe(run.last_fit)};
  const std::string both = fmt::format("{}, undisturbed {}", describe(run.last_fit), describe(undisturbed.last_fit));
  // Asked only after the comparison: a fault that may change weights often does not.
  const bool is_limit = run.last_fit && may_change_weights(faults, run);
  return {is_limit ? Verdict::documented_limit : Verdict::other_digest, both};
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  // In the order of the enumerators.
  static constexpr std::array<std::string_view, 7> kNames = {
      "same digest", "documented stop", "documented limit", "other digest", "ended", "out of time", "processes left"};
  static_assert(kNames.size() == static_cast<std::size_t>(Verdict::processes_left) + 1);
  return kNames.at(static_cast<std::size_t>(verdict));
}

bool has_survived(Verdict verdict) {
  return verdict == Verdict::same_digest || verdict == Verdict::documented_stop || verdict == Verdict::documented_limit;
}

CaseResult judge(const Case& test, const RunResult& undisturbed, const RunResult& run) {
  auto [verdict, sentence] = verdict_of(test, undisturbed, run);
  return {.test = test, .run = run, .verdict = verdict, .sentence = std::move(sentence)};
}

ResilienceTest::ResilienceTest(Program program, ResilienceOptions options)
    : program_(std::move(program)), options_(std::move(options)) {}

const RunResult& ResilienceTest::undisturbed() {
  if (undisturbed_) return *undisturbed_;
  RunResult run = run_program(program_, {.time_limit = options_.time_limit});
  if (run.exit_code != 0 || run.is_out_of_time || !run.last_fit) {
    const std::string end =
        run.is_out_of_time ? "did not end in time" : fmt::format("ended with {}", describe_end(run));
    throw Error(ErrorCode::failed_replica,
                fmt::format("the undisturbed run of {} {} ({}), so runs under faults cannot be compared with it",
                            program_.command.front(), end, describe(run.last_fit)));
  }
  if (const std::string failures = describe_own_failures(run); !failures.empty()) {
    throw Error(ErrorCode::failed_replica,
                fmt::format("the undisturbed run of {} failed by itself: it {}. Repair this first; "
                            "`holdfast report` tells more",
                            program_.command.front(), failures));
  }
  return undisturbed_.emplace(std::move(run));
}

CaseResult ResilienceTest::run(const Case& test) {
  parsed(test.faults);  // throws before the undisturbed run takes minutes
  const RunResult& expected = undisturbed();
  Program program = program_;
  if (test.replicas != 0) program.replicas = test.replicas;
  const std::string folder = options_.keep_in.empty() ? "" : fmt::format("{}/{}", options_.keep_in, test.name);
  return judge(
      test, expected,
      run_program(program, {.faults = test.faults, .time_limit = options_.time_limit, .run_directory = folder}));
}

}  // namespace holdfast::resilience
