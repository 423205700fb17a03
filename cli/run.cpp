// Runs a watchdog around a program of any kind. When a run ends unfinished, the newest memory snapshot is saved with
// the SDK's own function. Starting the program once more, only to save, would need a program that can still start.
// docs/decisions/holdfast-run.md

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/base/terminal.h"
#include "holdfast/recovery/launch.h"
#include "holdfast/recovery/run_program.h"
#include "holdfast/train/memory_savepoint.h"
#include "option_checks.h"
#include "subcommands.h"
#include "text.h"

namespace holdfast::cli {
namespace {

struct RunOptions {
  recovery::WatchdogOptions watchdog{.replicas = 0, .run_directory = "run"};  // the command is PROGRAM ARGUMENTS
  std::vector<std::string> devices{};
  recovery::HostFlags hosts{};
  bool starts_anew = false;
  std::string start_token{};  // for a fresh start
};

// Reports a failure of any kind and does not throw it: the caller needs the run's own exit code. A snapshot that cannot
// be saved is lost with this process, so the sentence says why.
void save_what_is_left(const std::string& run_directory, std::int64_t step, std::span<const std::byte> snapshot,
                       Console& console) {
  try {
    const std::optional<std::string> path = save_from_memory(run_directory, step, snapshot);
    if (path) console.problems << "holdfast: the newest state in memory was saved as " << printable(*path) << "\n";
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_file) {
      console.problems
          << "holdfast: the newest state in memory was not saved: it belongs to a program without the SDK, and only "
             "that program can save it\n";
      return;
    }
    console.problems << "holdfast: the newest state in memory could not be saved: " << printable(error.what()) << "\n";
  } catch (const std::bad_alloc&) {
    console.problems
        << "holdfast: the newest state in memory could not be saved: there is not enough memory to do it\n";
  } catch (const std::exception& error) {
    console.problems << "holdfast: the newest state in memory could not be saved, for an unexpected reason: "
                     << printable(error.what()) << "\n";
  }
}

// Blocks until the run is over, and returns its exit code. If the run has not finished, a sentence on
// `console.problems` says why. Throws Error when the run cannot begin.
int run(const RunOptions& options, Console& console) {
  if (options.watchdog.command.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "there is no program to run; give it after --: holdfast run [OPTIONS] -- PROGRAM [ARGUMENTS...]");
  }
  recovery::WatchdogOptions watchdog = options.watchdog;
  // The option, else HOLDFAST_START: the command line beats the environment.
  watchdog.start = recovery::start_asked_for(options.starts_anew ? std::optional(recovery::Start::fresh) : std::nullopt,
                                             options.start_token);
  // Sentences about hangs then name this command's options.
  watchdog.limit_names = {
      .hang_after = "--hang-after", .callback_timeout = "--callback-timeout", .start_timeout = "--start-timeout"};
  // Called while the snapshot is still there: its memory goes with the watchdog.
  watchdog.when_unfinished = [&](std::int64_t step, std::span<const std::byte> snapshot) {
    save_what_is_left(watchdog.run_directory, step, snapshot, console);
  };
  const recovery::RunOutcome outcome = recovery::run_program(watchdog, options.devices, options.hosts);
  if (outcome.exit_code != recovery::kExitFinished)
    // The program's progress line may still be in the terminal's row.
    console.problems << (console.has_terminal ? kClearLine : "") << "holdfast: " << printable(outcome.sentence) << "\n";
  return outcome.exit_code;
}

// Each word is the name of its enumerator, so that the command and the SDK speak alike.
void add_recovery_choices(CLI::App& command, RecoveryOptions& choices) {
  using recovery::RecoverFrom;
  using recovery::WhenLost;
  using recovery::WhenSlow;
  add_choice<WhenLost>(command, "--when-lost", choices.when_lost,
                       "After a loss without a spare: wait for a new process, or shrink (default) until it is ready",
                       {{"wait", WhenLost::wait}, {"shrink", WhenLost::shrink}});
  add_choice<RecoverFrom>(command, "--recover-from", choices.recover_from,
                          "survivors (default): they keep their state; savepoint: all processes start again from it",
                          {{"survivors", RecoverFrom::survivors}, {"savepoint", RecoverFrom::savepoint}});
  command.add_flag("--start-when-gone,!--start-at-once", choices.start_when_gone,
                   "Start a new process only after the old one on its device has ended (default for GPUs), or at once "
                   "(default for CPUs)");
  add_choice<WhenSlow>(
      command, "--when-slow", choices.when_slow,
      "A replica is slower than the others: report it (default), deal it fewer shards, or replace it with a spare",
      {{"report", WhenSlow::report}, {"deal", WhenSlow::deal}, {"replace", WhenSlow::replace}});
}

// All times share one range. A limit of zero would end every process at once.
void add_times(CLI::App& command, RecoveryOptions& times) {
  const auto range = between(0.001, 1e6);
  add_seconds(command, "--hang-after", times.hang_after,
              "A process without progress for this time has hung. Default: depends on what the process does and on "
              "its step times",
              range);
  add_seconds(command, "--callback-timeout", times.callback_timeout,
              "A callback of the program without progress for this time has hung. Default: --hang-after if given, "
              "else 600",
              range);
  add_seconds(command, "--place-rest", times.place_rest,
              "How long to leave out a device on which processes keep failing; doubled each further time", range);
  add_seconds(command, "--start-timeout", times.start_timeout,
              "A starting process without progress for this time has hung", range);
  add_seconds(command, "--stop-grace", times.stop_grace,
              "The time from SIGTERM until processes that still run are killed", range);
}

// The names of torchrun, for what it has.
void add_hosts(CLI::App& command, recovery::WatchdogOptions& watchdog, recovery::HostFlags& hosts) {
  command.add_option(
      "--nnodes", hosts.nnodes,
      "The number of hosts, on each of which this command is started with the same --run-dir, which they "
      "share (see --separate-run-dirs). Default: what torchrun, Slurm or another launcher says in the environment, "
      "else 1");
  command.add_option("--node-rank", hosts.node_rank, "Which of the hosts this one is, from 0");
  command.add_option("--head", hosts.head, "Where the host of rank 0 listens, such as node7:29400");
  command.add_option("--secret", hosts.secret,
                     "The file with the secret that all hosts share; default: HOLDFAST_SECRET_FILE");
  command.add_flag("--separate-run-dirs", hosts.separate_run_dirs,
                   "Each host has a run directory of its own, with its own savepoints, instead of one that all share");
  const auto range = between(0.001, 1e6);
  add_seconds(command, "--join-timeout", watchdog.join_timeout, "How long the hosts wait for each other at the start",
              range);
  add_seconds(command, "--head-timeout", hosts.head_timeout,
              "How long another host waits for the host of rank 0 when that is lost; then it saves what it has", range);
}

void add_run_options(CLI::App& command, RunOptions& options) {
  recovery::WatchdogOptions& watchdog = options.watchdog;
  // The parser's own line of usage lacks the program, which stands after "--" and never reaches the parser.
  command.footer("Usage: holdfast run [OPTIONS] -- PROGRAM [ARGUMENTS...]");
  command.add_option("--replicas", watchdog.replicas, "The number of processes (default: one for each device or core)")
      ->check(CLI::Range(1, recovery::kMaxReplicas).description(""));
  command
      .add_option("--devices", options.devices,
                  "The devices of the processes, such as cpu:0,cpu:1; each process finds its own in HOLDFAST_DEVICE")
      ->delimiter(',');
  command
      .add_option("--fresh", options.start_token,
                  "Start anew, and keep an earlier run of the directory under another name. With "
                  "a value, such as --fresh=MONDAY, this happens once for each value. Without this option "
                  "HOLDFAST_START decides (resume, fresh or fresh:TOKEN)")
      ->type_name("[TOKEN]")
      ->expected(0, 1);
  command.add_flag("--plain", watchdog.is_plain_program,
                   "The program does not use Holdfast: exit code 0 ends it, any other code makes all start again");
  command
      .add_option("--spares", watchdog.recovery.spares, "Additional processes, ready to replace a failed one at once")
      ->check(CLI::Range(0, recovery::kMaxReplicas).description(""));
  command
      .add_option("--max-replicas", watchdog.max_replicas,
                  "The most replicas that \"holdfast scale\" may ask for (SDK programs: at most their shards)")
      ->check(CLI::Range(1, recovery::kMaxReplicas).description(""));
  command.add_option("--run-dir", watchdog.run_directory, "The folder for journal, lock and savepoints")
      ->capture_default_str();
  command
      .add_option("--max-restarts", watchdog.recovery.max_restarts,
                  "Restarts within ten minutes; one more ends the run")
      ->capture_default_str()
      ->check(whole_of<int>(0));
  add_hosts(command, watchdog, options.hosts);
  add_recovery_choices(command, watchdog.recovery);
  add_times(command, watchdog.recovery);
  std::vector<std::pair<std::string, LogLevel>> levels;
  for (const LogLevel level : {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error}) {
    levels.emplace_back(name(level), level);
  }
  add_choice(command, "--log-level", watchdog.recovery.log_level,
             "The least important lines to log: debug shows every decision, warning one line for each failure", levels);
  command
      .add_option("--inject", watchdog.recovery.faults,
                  "A fault to inject, such as rank=1,step=120,fault=kill; may be repeated")
      ->allow_extra_args(false);
}

}  // namespace

void add_run(Subcommands& commands) {
  commands.add<RunOptions>(
      "run",
      "Run a program in several processes under a watchdog that restarts them after a failure. Exit code: 0 "
      "finished, 1 the run cannot go on, 2 wrong usage, 70 it failed too often, 75 stopped: the same command "
      "resumes it",
      add_run_options, [&commands](RunOptions options) {
        // --fresh may come without a value, so its presence counts and not its text.
        options.starts_anew = commands.app.get_subcommand("run")->count("--fresh") > 0;
        // What follows "--", which the parser of options never sees.
        options.watchdog.command = commands.program;
        return run(options, commands.console);
      });
}

}  // namespace holdfast::cli
