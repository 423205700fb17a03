// Runs the program once without faults, then once per case, and compares the weights. A run in which a fault never
// struck shows nothing, so it must not end with exit code 0: nobody reads the table of a build server. Random faults
// are therefore drawn only for steps and phases that the first run reached. docs/decisions/testing.md

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "chaos_report.h"
#include "holdfast/base/error.h"
#include "holdfast/base/whole_file.h"
#include "holdfast/recovery/fault_plan.h"
#include "holdfast/recovery/launch.h"
#include "holdfast/recovery/watchdog.h"
#include "holdfast/testing/fault_matrix.h"
#include "holdfast/testing/resilience_test.h"
#include "option_checks.h"
#include "subcommands.h"
#include "text.h"

namespace holdfast::cli {
namespace {

using resilience::Case;
using resilience::CaseResult;
using resilience::RunResult;

struct ChaosOptions {
  std::vector<std::string> command{};  // contains {run_dir}, and may contain {replicas}
  // The source of the faults: exactly one of these.
  std::vector<std::string> faults{};
  std::string plan_path{};
  std::optional<int> random_faults{};
  bool is_matrix = false;
  bool is_pairs = false;
  std::optional<double> kill_every_seconds{};

  std::uint64_t seed = 0;  // for random faults, for samples, and for the choice of the replica to kill
  std::optional<int> replicas{};
  int hosts = 1;
  std::optional<std::int64_t> steps{};  // the last step of random faults; empty: that of the undisturbed run
  bool is_one_run_each = false;         // one run for each fault, not one for all of them
  bool allows_missed = false;           // a fault that never struck is reported, and does not count as a failure
  resilience::FaultMatrix matrix{};     // for --matrix and --pairs
  std::optional<std::size_t> sample{};  // of the cases of the matrix

  std::chrono::milliseconds timeout = std::chrono::minutes(2);
  std::string keep_in{};
  std::string json_path{};
  std::string junit_path{};
};

// Quoted so that a shell reads it as one word. Braces are quoted too: shells make two words of {a,b}.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./,:";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string program_of(const ChaosOptions& options) {
  std::string text = " --";
  for (const std::string& word : options.command) text += " " + quoted(word);
  return text;
}

// A command that repeats one case alone, to be pasted into a shell.
std::string replay_of(const Case& test, const ChaosOptions& options) {
  std::string text = "holdfast chaos";
  for (const std::string& fault : test.faults) text += " --fault " + quoted(fault);
  if (test.replicas != 0) text += fmt::format(" --replicas {}", test.replicas);
  if (options.hosts > 1) text += fmt::format(" --hosts {}", options.hosts);
  return text + program_of(options);
}

void require_one_source(const ChaosOptions& options) {
  if (options.command.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "there is no program to run; give it after --, with {run_dir} for the run directory: holdfast chaos "
                "[OPTIONS] -- PROGRAM [ARGUMENTS...]");
  }
  // With two sources the table could not say which faults a run had.
  const int sources = (options.faults.empty() ? 0 : 1) + (options.plan_path.empty() ? 0 : 1) +
                      (options.random_faults ? 1 : 0) + (options.is_matrix ? 1 : 0) + (options.is_pairs ? 1 : 0) +
                      (options.kill_every_seconds ? 1 : 0);
  if (sources == 1) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("give exactly one of --fault, --plan, --faults, --matrix, --pairs and --every; {} of them "
                          "are given",
                          sources));
}

// All runs are on this host.
void require_one_host(const ChaosOptions& options) {
  constexpr const char* kAdvice =
      "chaos tests a program on this host alone; --hosts tests it on several addresses of it, as on several hosts";
  const std::string several = recovery::who_says_several_hosts();
  if (!several.empty()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}, and {}; unset what says so to test a run of this host", several, kAdvice));
  }
  for (auto word = options.command.begin(); word != options.command.end(); ++word) {
    const bool is_value_next = *word == "--nnodes" && word + 1 != options.command.end();
    const std::string hosts = is_value_next ? *(word + 1) : word->starts_with("--nnodes=") ? word->substr(9) : "1";
    if (hosts == "1") continue;
    throw Error(ErrorCode::unsupported,
                fmt::format("the command has --nnodes {}, and {}; leave it out to test a run of "
                            "this host",
                            hosts, kAdvice));
  }
}

std::vector<std::string> specifications(const std::vector<recovery::Fault>& faults) {
  std::vector<std::string> texts;
  for (const recovery::Fault& fault : faults) texts.push_back(fault.specification);
  return texts;
}

// The phases that the undisturbed run reached, by its journal. The journal does not record memory snapshots or pruning,
// and this run had no recovery. The matrix covers these phases, at steps that the user names.
std::vector<recovery::FaultPhase> phases_reached(const std::vector<std::int64_t>& savepoint_steps) {
  using recovery::FaultPhase;
  std::vector<FaultPhase> phases = {FaultPhase::start,        FaultPhase::data,     FaultPhase::forward,
                                    FaultPhase::backward,     FaultPhase::reduce,   FaultPhase::before_update,
                                    FaultPhase::after_update, FaultPhase::callback, FaultPhase::shutdown};
  if (!savepoint_steps.empty()) {
    phases.insert(phases.end(), {FaultPhase::writing, FaultPhase::before_rename, FaultPhase::after_rename});
  }
  return phases;
}

// The faults of the command line or of the plan, after a check.
std::vector<std::string> given_faults(FileSystem& files, const ChaosOptions& options) {
  constexpr int kMostRanks = 2 * recovery::kMaxReplicas;  // spares may get ranks; only the program knows how many
  if (!options.plan_path.empty())
    return specifications(recovery::parse_fault_plan(read_text_file(files, options.plan_path), kMostRanks));
  for (const std::string& fault : options.faults) recovery::parse_fault(fault, kMostRanks);
  return options.faults;
}

std::vector<std::string> drawn_faults(const ChaosOptions& options, const RunResult& undisturbed, int replicas) {
  // On several hosts the end of a watchdog is the loss of a host, which the program's next start there brings back.
  const std::span<const recovery::FaultKind> all = recovery::fault_kinds();
  // A fault at a rank or a step that the run does not have would never strike.
  const std::int64_t last_step = std::max<std::int64_t>(1, undisturbed.last_fit->step);
  const std::int64_t steps = std::min(options.steps.value_or(last_step), last_step);
  std::vector<std::int64_t> savepoint_steps = undisturbed.savepoint_steps;
  std::erase_if(savepoint_steps, [&](std::int64_t step) { return step > steps; });
  return specifications(recovery::random_fault_plan(
      {.faults = *options.random_faults,
       .seed = options.seed,
       .replicas = std::clamp(undisturbed.replicas, 1, replicas),
       .steps = steps,
       .kinds = options.hosts == 1 ? std::vector<recovery::FaultKind>() : std::vector(all.begin(), all.end()),
       .phases = phases_reached(savepoint_steps),
       .savepoint_steps = savepoint_steps,
       .runs = options.is_one_run_each ? recovery::RunsToStrike::one_for_each_fault : recovery::RunsToStrike::one}));
}

std::vector<Case> matrix_cases(const ChaosOptions& options) {
  std::vector<Case> cases =
      options.is_pairs ? resilience::fault_pairs(options.matrix) : resilience::fault_matrix(options.matrix);
  return options.sample ? resilience::sample_of(std::move(cases), *options.sample, options.seed) : cases;
}

std::vector<Case> cases_of(const ChaosOptions& options, const std::vector<std::string>& given,
                           const RunResult& undisturbed) {
  // The cases of a matrix bring their own numbers of replicas.
  if (options.is_matrix || options.is_pairs) return matrix_cases(options);
  const int replicas = options.replicas.value_or(std::max(1, undisturbed.replicas / options.hosts));
  const std::vector<std::string> faults =
      options.random_faults ? drawn_faults(options, undisturbed, replicas * options.hosts) : given;
  if (!options.is_one_run_each) return {{.name = "all", .faults = faults, .replicas = replicas}};
  std::vector<Case> cases;
  for (const std::string& fault : faults) {
    cases.push_back({.name = fmt::format("{} {}", cases.size() + 1, fault), .faults = {fault}, .replicas = replicas});
  }
  return cases;
}

void write_file(FileSystem& files, const std::string& path, const std::string& text) {
  // The file is replaced in one step, so a build server that polls it never reads half of it.
  if (!path.empty()) write_whole_file(files, path, std::as_bytes(std::span(text)));
}

// Goes to standard error and is flushed at once: a suite may run for hours, and standard output may
// be a file.
void tell(const CaseResult& result, std::size_t number, std::size_t count, Console& console) {
  console.problems << "holdfast: " << number << " of " << count << ": " << printable(result.test.name) << ": "
                   << to_string(result.verdict) << "\n"
                   << std::flush;
}

int finish(const ChaosReport& report, Console& console) {
  write_table(report, console.out);
  write_findings(report, console.out);
  return exit_code(report);
}

int kill_again_and_again(FileSystem& files, const ChaosOptions& options, const resilience::Program& program,
                         const RunResult& undisturbed, Console& console) {
  // This run kills at times and not at steps, so it is one case, and it shows nothing if no replica
  // was killed.
  const resilience::SoakResult soak = resilience::soak(program, {.every = to_milliseconds(*options.kill_every_seconds),
                                                                 .seed = options.seed,
                                                                 .time_limit = options.timeout,
                                                                 .run_directory = options.keep_in});
  ChaosReport report{.undisturbed = undisturbed, .allows_missed = options.allows_missed};
  const std::string replay =
      fmt::format("holdfast chaos --every {} --seed {}{}", describe_number(*options.kill_every_seconds), options.seed,
                  program_of(options));
  report.cases.push_back({.result = resilience::judge({.name = "soak"}, undisturbed, soak.run),
                          .missed = soak.kills == 0 ? 1 : 0,
                          .replay = replay});
  write_soak(soak, console.out);
  write_file(files, options.json_path, to_json_text(soak, report));
  write_file(files, options.junit_path, to_junit_text(report));
  return finish(report, console);
}

// Writes a line for each finished run to `console.problems`. At the end a table goes to `console.out`, then the
// findings, each with the command that repeats it. Returns kDone when the program survived everything, kDamaged when it
// did not, and kNotDone when it survived but not every fault struck, unless `allows_missed`. Throws Error for wrong
// usage, and when the undisturbed run does not finish. Blocks for as long as the runs take.
int chaos(FileSystem& files, const ChaosOptions& options, Console& console) {
  require_one_source(options);
  require_one_host(options);
  // Check the faults before the undisturbed run, which may take hours.
  const std::vector<std::string> given = given_faults(files, options);
  if (options.kill_every_seconds && options.hosts > 1) {
    throw Error(ErrorCode::invalid_argument, "--every kills replicas of one host; leave --hosts out, or give --faults");
  }
  const resilience::Program program{
      .command = options.command, .replicas = options.replicas.value_or(2), .hosts = options.hosts};
  resilience::ResilienceTest test(program, {.time_limit = options.timeout, .keep_in = options.keep_in});
  ChaosReport report{.undisturbed = test.undisturbed(), .allows_missed = options.allows_missed};
  console.out << "undisturbed: weights " << report.undisturbed.last_fit->weights_digest << " at step "
              << report.undisturbed.last_fit->step << "\n\n"
              << std::flush;
  if (options.kill_every_seconds) return kill_again_and_again(files, options, program, report.undisturbed, console);

  const std::vector<Case> cases = cases_of(options, given, report.undisturbed);
  for (const Case& entry : cases) {
    CaseResult result = test.run(entry);
    const int missed = std::max(0, static_cast<int>(entry.faults.size()) - result.run.faults_struck);
    // The replay names each fault, not the seed. A draw depends on the steps of savepoints, and these may depend on
    // time.
    report.cases.push_back({.result = std::move(result), .missed = missed, .replay = replay_of(entry, options)});
    tell(report.cases.back().result, report.cases.size(), cases.size(), console);
    // Write the files after each case, so that a failure does not lose hours of work.
    write_file(files, options.json_path, to_json_text(report));
    write_file(files, options.junit_path, to_junit_text(report));
  }
  return finish(report, console);
}

void add_matrix_options(CLI::App& command, ChaosOptions& options) {
  const auto add_step = [&](const char* name, std::int64_t& step, const char* what) {
    command.add_option(name, step, what)->capture_default_str()->check(whole_from(0));
  };
  command
      .add_option("--matrix-replicas", options.matrix.replicas,
                  "With --matrix or --pairs: numbers of replicas to try, such as 2,4")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::Range(1, 64).description(""));
  add_step("--step", options.matrix.step, "With --matrix or --pairs: a step that training reaches");
  add_step("--savepoint-step", options.matrix.savepoint_step,
           "With --matrix or --pairs: a step at which a savepoint is written and older ones are deleted");
  add_step("--snapshot-step", options.matrix.snapshot_step,
           "With --matrix or --pairs: a step at which a memory snapshot is made");
  command
      .add_option("--sample", options.sample, "With --matrix or --pairs: run only this many cases, drawn with --seed")
      ->check(whole_from(1));
}

void add_chaos_options(CLI::App& command, ChaosOptions& options) {
  command.footer(
      "Usage: holdfast chaos [OPTIONS] -- PROGRAM [ARGUMENTS...]. In an argument, {run_dir} is replaced by the run "
      "directory, a fresh one for each run, and {replicas} by the number of replicas.");
  command
      // An option with a list takes all words that follow. allow_extra_args(false) makes it one
      // word each time.
      .add_option("--fault", options.faults, "A fault to inject, such as rank=1,step=120,fault=kill; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--plan", options.plan_path, "A file with one fault a line, or with a JSON list of faults");
  command
      .add_option("--faults", options.random_faults,
                  "The number of faults to draw with --seed, for steps and phases that the undisturbed run reached")
      ->check(whole_of<int>(1));
  command.add_flag("--matrix", options.is_matrix, "Inject every fault in every phase, one run each");
  command.add_flag("--pairs", options.is_pairs, "Inject every fault during the recovery from a death, one run each");
  command
      .add_option("--every", options.kill_every_seconds,
                  "Kill a replica at this interval (5s, 500ms) in one run, and watch the watchdog's memory")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1.0}, {"ms", 0.001}, {"min", 60.0}},
                                        CLI::AsNumberWithUnit::CASE_SENSITIVE, "TIME"))
      ->check(between(0.01, 1e6));
  command.add_option("--seed", options.seed, "The seed of all random choices")
      ->capture_default_str()
      ->check(whole_of<std::uint64_t>(0));
  command
      .add_option("--replicas", options.replicas,
                  "The value of {replicas}, and the ranks of random faults (default: those of the program)")
      ->check(CLI::Range(1, 64).description(""));
  command
      .add_option("--hosts", options.hosts,
                  "Start the program so many times at once, as on several hosts, at addresses of this one; {replicas} "
                  "are those of each")
      ->capture_default_str()
      ->check(CLI::Range(1, 16).description(""));
  command.add_option("--steps", options.steps, "The last step of random faults (default: that of the undisturbed run)")
      ->check(whole_from(1));
  command.add_flag("--each", options.is_one_run_each,
                   "Make one run for each fault, instead of one run with all faults");
  command.add_flag("--allow-missed", options.allows_missed,
                   "Accept runs in which not every fault struck; without this option the exit code is 2");
  add_seconds(command, "--timeout", options.timeout,
              "The time limit of each run; after it all processes of the run are killed", between(0.1, 1e7));
  add_matrix_options(command, options);
  command.add_option("--keep", options.keep_in, "Keep the run directories in this folder; otherwise they are deleted");
  command.add_option("--json", options.json_path, "Write the results to this file, as JSON");
  command.add_option("--junit", options.junit_path, "Write the results to this file, as JUnit XML for build servers");
}

}  // namespace

void add_chaos(Subcommands& commands) {
  commands.add<ChaosOptions>(
      "chaos",
      "Run a program without faults and with faults, and compare the weights at the end. Exit code: 0 it survived, 1 "
      "it did not, 2 wrong usage, or not every fault struck",
      add_chaos_options, [&commands](ChaosOptions options) {
        options.command = commands.program;
        return chaos(commands.files, options, commands.console);
      });
}

}  // namespace holdfast::cli
