#include "command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <new>

#include "chaos.h"
#include "convert.h"
#include "diff.h"
#include "doctor.h"
#include "exit_code.h"
#include "holdfast/base/error.h"
#include "inspect.h"
#include "live_run.h"
#include "option_checks.h"
#include "prune.h"
#include "report.h"
#include "run.h"
#include "stats.h"
#include "status.h"
#include "text.h"
#include "verify.h"

namespace holdfast::cli {
namespace {

using Action = std::function<int()>;

constexpr const char* kAnyFile = "A file of Holdfast, safetensors, NumPy (.npz), Keras (.keras, .h5) or other HDF5";

constexpr const char* kRunDirectory = "The run directory of a program that Holdfast supervises";

// What the arguments ask for; `action` is set by the subcommand that was parsed.
class Parser {
 public:
  Parser(FileSystem& files, Console& console) : files_(files), console_(console) {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", "holdfast " HOLDFAST_VERSION);
    add_inspect();
    add_verify();
    add_diff();
    add_stats();
    add_convert();
    add_prune();
    add_run();
    add_status();
    add_scale();
    add_snapshot();
    add_report();
    add_chaos();
    add_doctor();
  }

  // None when all is said already, as by --help; `exit_code` then.
  Action parse(std::vector<std::string> arguments, int& exit_code) {
    take_program(arguments, "run", run_.watchdog.command);
    take_program(arguments, "chaos", chaos_.command);
    if (!knows_command_of(arguments)) {
      console_.problems << "holdfast: there is no command \"" << printable(arguments.front())
                        << "\"; \"holdfast --help\" lists those that there are\n";
      exit_code = kNotDone;
      return {};
    }
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    try {
      app_.parse(arguments);
      return action_;
    } catch (const CLI::ParseError& error) {
      exit_code = app_.exit(error, console_.out, console_.problems) == 0 ? kDone : kNotDone;  // help is one, too
      return {};
    }
  }

 private:
  void add_inspect() {
    CLI::App* command = app_.add_subcommand("inspect", "Show what a file holds");
    command->add_option("FILE", inspect_.path, kAnyFile)->required();
    command->add_flag("--json", inspect_.as_json, "As JSON, with all metadata");
    add_max_memory(*command, inspect_.max_memory_bytes);
    command->callback([this] { action_ = [this] { return inspect(files_, inspect_, console_); }; });
  }

  static void add_max_memory(CLI::App& command, std::uint64_t& bytes) {
    command
        .add_option("--max-memory", bytes,
                    "What may be in memory at once of another program's HDF5 file, such as 16GiB; default: 4GiB")
        ->transform(size_in_bytes())
        ->type_name("SIZE");
  }

  void add_verify() {
    CLI::App* command = app_.add_subcommand(
        "verify", "Check every byte of a file, or of each *.h5 in a folder. Exit code: 0 whole, 1 damaged, 2 not done");
    command->add_option("PATH", verify_path_, "A file that Holdfast wrote, or a folder of them")->required();
    command->callback([this] { action_ = [this] { return verify(files_, verify_path_, console_); }; });
  }

  void add_diff() {
    CLI::App* command = app_.add_subcommand(
        "diff", "Show what two files hold differently. Exit code: 0 equal, 1 different, 2 not done");
    command->add_option("A", diff_.a, kAnyFile)->required();
    command->add_option("B", diff_.b, "Another")->required();
    command
        ->add_option("--tolerance", diff_.tolerance,
                     "Take elements for equal that are at most so far apart, and all NaNs; without it their bits count")
        ->check(at_least(0));
    command->add_flag("--ignore-metadata", diff_.ignores_metadata, "Compare the arrays alone");
    command->callback([this] { action_ = [this] { return diff(files_, diff_, console_); }; });
  }

  void add_stats() {
    CLI::App* command =
        app_.add_subcommand("stats", "Show range, mean, norm, NaNs and a histogram of each array's finite values");
    command->add_option("FILE", stats_.path, kAnyFile)->required();
    command->add_flag("--json", stats_.as_json, "As JSON");
    add_max_memory(*command, stats_.max_memory_bytes);
    command->callback([this] { action_ = [this] { return stats(files_, stats_, console_); }; });
  }

  void add_convert() {
    CLI::App* command = app_.add_subcommand(
        "convert", "Write a file's arrays as a file of another kind; what has no place there is named");
    command->add_option("IN", convert_.input, kAnyFile)->required();
    command
        ->add_option("OUT", convert_.output,
                     "The file to write: .h5 (Holdfast), .safetensors, .npz, .keras, .weights.h5 (Keras)")
        ->required();
    command
        ->add_option(
            "--to", convert_.to,
            "The kind of OUT where its name does not tell; pytorch: safetensors with the names and layouts of a "
            "PyTorch state dict")
        ->type_name("holdfast|safetensors|npz|pytorch|keras-weights|keras|keras-legacy-weights|keras-legacy");
    command
        ->add_option("--like", convert_.like,
                     "A savepoint of the same model: with its names and shapes weights of Keras or PyTorch become a "
                     "savepoint")
        ->type_name("SAVEPOINT");
    add_compression(*command);
    command->add_flag("--force", convert_.replaces_output, "Replace OUT if it exists");
    command->callback([this] { action_ = [this] { return convert(files_, convert_, console_); }; });
  }

  void add_compression(CLI::App& command) {
    using format::Compression;
    const std::vector<std::pair<std::string, Compression>> kinds = {
        {"fast", Compression::fast}, {"zstd", Compression::zstd}, {"none", Compression::none}};
    command
        .add_option("--compression", convert_.compression,
                    "Of a Holdfast file: fast (default), zstd, or none: the portable mode, which every HDF5 reads "
                    "without a plugin")
        ->transform(one_of(kinds))
        ->type_name("fast|zstd|none");
    command.add_option("--level", convert_.zstd_level, "Of zstd: -7 (fastest) to 22 (smallest)")
        ->check(CLI::Range(-7, 22).description(""));
  }

  void add_prune() {
    CLI::App* command = app_.add_subcommand(
        "prune",
        "Delete the savepoints of a folder that no rule keeps. The newest whole one and the best always stay. A run "
        "directory is refused while its run is live. Exit code: 0 done, 1 one was damaged, 2 not done");
    format::RetentionPolicy& retention = prune_.retention;
    command->add_option("FOLDER", prune_.folder, "A run directory, or another folder of savepoints")->required();
    command->add_option("--keep-last", retention.keep_last, "The newest so many stay; 0: all")->check(whole_from(0));
    command->add_option("--keep-best", retention.keep_best, "So many with the best metric stay, too")
        ->check(whole_from(0));
    command->add_option("--by", prune_.best_by, "The metric")->capture_default_str();
    const std::vector<std::pair<std::string, format::BestValue>> directions = {{"lowest", format::BestValue::lowest},
                                                                               {"highest", format::BestValue::highest},
                                                                               {"min", format::BestValue::lowest},
                                                                               {"max", format::BestValue::highest}};
    command
        ->add_option("--best", retention.best,
                     "Which value of the metric is the best: lowest (default) or highest; min and max mean the same")
        ->transform(one_of(directions))
        ->type_name("lowest|highest");
    command->add_option("--keep-every", retention.keep_every_steps, "All whose step is a multiple stay, too")
        ->check(whole_from(0));
    command
        ->add_option("--max-bytes", retention.max_bytes,
                     "The oldest of those go until all fit (10MB, 2GiB), but never the newest or the best")
        ->transform(size_in_bytes());
    command->add_flag("--dry-run", prune_.is_trial, "Say what would be deleted, and change nothing");
    command->callback([this] { action_ = [this] { return prune(files_, prune_, console_); }; });
  }

  void add_run() {
    CLI::App* command = app_.add_subcommand(
        "run",
        "Run a program in several processes under a watchdog that brings them back after any failure. Exit code: 0 "
        "finished, 1 the run cannot go on, 2 wrong usage, 70 it failed too often, 75 stopped: the same command goes "
        "on");
    recovery::WatchdogOptions& watchdog = run_.watchdog;
    command->footer("The program stands behind a --: holdfast run [OPTIONS] -- PROGRAM [ARGUMENTS...]");
    command->add_option("--replicas", watchdog.replicas, "Processes; default: one for each device, or each core")
        ->check(CLI::Range(1, recovery::kMaxReplicas).description(""));
    command
        ->add_option("--devices", run_.devices,
                     "What the processes are dealt to, such as cpu:0,cpu:1; each finds its own in HOLDFAST_DEVICE")
        ->delimiter(',');
    CLI::Option* fresh =
        command
            ->add_option("--fresh", run_.start_token,
                         "Start anew; an earlier run in the directory is kept under another name. With "
                         "a value, as --fresh=MONDAY, once for each value. Without this option as "
                         "HOLDFAST_START says (resume, fresh or fresh:TOKEN)")
            ->type_name("[TOKEN]")
            ->expected(0, 1);
    command->add_flag("--plain", watchdog.is_plain_program,
                      "The program knows nothing of Holdfast: exit code 0 is its end, any other makes all start again");
    command->add_option("--spares", watchdog.spares, "Further processes, ready to take the place of one at once")
        ->check(CLI::Range(0, recovery::kMaxReplicas).description(""));
    command
        ->add_option("--max-replicas", watchdog.max_replicas,
                     "As many as \"holdfast scale\" may ask for; of a program of the SDK at most its shards")
        ->check(CLI::Range(1, recovery::kMaxReplicas).description(""));
    command->add_option("--run-dir", watchdog.run_directory, "Journal and lock; what the program saves, too")
        ->capture_default_str();
    command->add_option("--max-restarts", watchdog.max_restarts, "Within ten minutes; one more ends the run")
        ->capture_default_str()
        ->check(whole_of<int>(0));
    add_recovery_choices(*command);
    add_run_times(*command);
    std::vector<std::pair<std::string, LogLevel>> levels;
    for (const LogLevel level : {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error}) {
      levels.emplace_back(name(level), level);
    }
    command
        ->add_option("--log-level", watchdog.log_level,
                     "The least that is said: debug has all that the watchdog decides, warning a line a failure")
        ->transform(one_of(levels))
        ->type_name("debug|info|warning|error");
    command->add_option("--inject", watchdog.faults, "A fault to make, such as rank=1,step=120,fault=kill; repeatable")
        ->allow_extra_args(false);
    command->callback([this, fresh] {
      run_.starts_anew = fresh->count() > 0;
      action_ = [this] { return run(run_, console_); };
    });
  }

  void add_recovery_choices(CLI::App& command) {
    using recovery::RecoverFrom;
    using recovery::WhenLost;
    using recovery::WhenSlow;
    const std::vector<std::pair<std::string, WhenLost>> losses = {{"wait", WhenLost::wait},
                                                                  {"shrink", WhenLost::shrink}};
    command
        .add_option("--when-lost", run_.watchdog.when_lost,
                    "Without a spare: wait for a new process, or shrink (default) until it is there")
        ->transform(one_of(losses))
        ->type_name("wait|shrink");
    const std::vector<std::pair<std::string, RecoverFrom>> sources = {{"survivors", RecoverFrom::survivors},
                                                                      {"savepoint", RecoverFrom::savepoint}};
    command
        .add_option("--recover-from", run_.watchdog.recover_from,
                    "survivors (default) keep their state; savepoint: all start again")
        ->transform(one_of(sources))
        ->type_name("survivors|savepoint");
    command.add_flag("--start-when-gone,!--start-at-once", run_.watchdog.start_when_gone,
                     "A new process waits for the confirmed end of the one before it on its device (default where that "
                     "is no CPU), or does not");
    const std::vector<std::pair<std::string, WhenSlow>> slow = {
        {"report", WhenSlow::report}, {"deal", WhenSlow::deal}, {"replace", WhenSlow::replace}};
    command
        .add_option(
            "--when-slow", run_.watchdog.when_slow,
            "A replica slower than the others: report (default), deal it fewer shards, or replace it by a spare")
        ->transform(one_of(slow))
        ->type_name("report|deal|replace");
  }

  void add_run_times(CLI::App& command) {
    const auto range = between(0.001, 1e6);
    const auto add = [&](const char* name, double& seconds, const char* what) {
      command.add_option(name, seconds, what)->capture_default_str()->check(range)->type_name("SECONDS");
    };
    command
        .add_option(
            "--hang-after", run_.hang_after_seconds,
            "Without progress; then a process is taken for hung. Default: by what it does and by its step times")
        ->check(range)
        ->type_name("SECONDS");
    command
        .add_option(
            "--callback-timeout", run_.callback_timeout_seconds,
            "Without progress in callbacks of the program. Default: that of --hang-after if it is given, else 600")
        ->check(range)
        ->type_name("SECONDS");
    add("--place-rest", run_.place_rest_seconds,
        "A device where one process after the other failed is left out so long, twice as long each further time");
    add("--start-timeout", run_.start_timeout_seconds, "Without progress while it starts");
    add("--stop-grace", run_.stop_grace_seconds, "From SIGTERM until processes that have not left are killed");
  }

  void add_status() {
    CLI::App* command = app_.add_subcommand(
        "status", "Show a live run, process by process: on a terminal again and again until it ends, elsewhere once");
    command->add_option("RUN", status_.run, kRunDirectory)->required();
    command->add_flag("--json", status_.as_json, "As JSON, one line a look");
    CLI::Option* once = command->add_flag("--once", status_.once, "One look, also on a terminal");
    command->add_flag("--watch", status_.watch, "Again and again, also elsewhere")->excludes(once);
    command->callback([this] { action_ = [this] { return status(status_, console_); }; });
  }

  void add_scale() {
    CLI::App* command = app_.add_subcommand(
        "scale", "Let a live run go on with another number of replicas from its next step; its bits stay the same");
    command->add_option("RUN", scale_.run, kRunDirectory)->required();
    command->add_option("REPLICAS", scale_.replicas, "1 to the run's number of shards")->required();
    command->callback([this] { action_ = [this] { return scale(scale_, console_); }; });
  }

  void add_snapshot() {
    CLI::App* command = app_.add_subcommand(
        "snapshot", "Have a live run write a savepoint at its next step, and wait until it is durable");
    command->add_option("RUN", snapshot_.run, kRunDirectory)->required();
    command->add_option("--timeout", snapshot_.seconds, "How many seconds to wait for it")
        ->check(CLI::Range(1, 3600).description(""))
        ->capture_default_str();
    command->callback([this] { action_ = [this] { return snapshot(snapshot_, console_); }; });
  }

  void add_report() {
    CLI::App* command = app_.add_subcommand(
        "report", "Tell the story of a run, live or not, from its journal: what failed, what it took, what was lost");
    command->add_option("RUN", report_.run, kRunDirectory)->required();
    command->add_flag("--json", report_.as_json, "As JSON");
    command->callback([this] { action_ = [this] { return report(report_, console_); }; });
  }

  void add_chaos() {
    CLI::App* command = app_.add_subcommand(
        "chaos",
        "Run a program undisturbed and under faults, and compare the weights at the end. Exit code: 0 it survived, 1 "
        "it did not, 2 not done, or not every fault struck");
    command->footer(
        "The program stands behind a --: holdfast chaos [OPTIONS] -- PROGRAM [ARGUMENTS...]. {run_dir} in an argument "
        "stands for the run directory, a fresh one for each run, and {replicas} for the number of replicas.");
    command->add_option("--fault", chaos_.faults, "A fault, such as rank=1,step=120,fault=kill; repeatable")
        ->allow_extra_args(false);
    command->add_option("--plan", chaos_.plan_path, "A file with a fault a line, or a JSON list of them");
    command
        ->add_option("--faults", chaos_.random_faults,
                     "So many faults, drawn from --seed for places that the undisturbed run got to")
        ->check(whole_of<int>(1));
    command->add_flag("--matrix", chaos_.is_matrix, "Every fault in every phase, one run for each");
    command->add_flag("--pairs", chaos_.is_pairs, "Every fault during the recovery from a death, one run for each");
    command
        ->add_option("--every", chaos_.kill_every_seconds,
                     "Kill a replica each so often (5s, 500ms) in one run, and watch what the watchdog holds")
        ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1.0}, {"ms", 0.001}, {"min", 60.0}},
                                          CLI::AsNumberWithUnit::CASE_SENSITIVE, "TIME"))
        ->check(between(0.01, 1e6));
    command->add_option("--seed", chaos_.seed, "Seed of the draws")
        ->capture_default_str()
        ->check(whole_of<std::uint64_t>(0));
    command->add_option("--replicas", chaos_.replicas, "For {replicas} and for random faults; default: the program's")
        ->check(CLI::Range(1, 64).description(""));
    command->add_option("--steps", chaos_.steps, "Of the run, for random faults; default: as the undisturbed run has")
        ->check(whole_from(1));
    command->add_flag("--each", chaos_.is_one_run_each, "A run for each fault, not one with all of them");
    command->add_flag("--allow-missed", chaos_.allows_missed,
                      "Take runs for survivors, too, in which not every fault struck; without it the exit code is 2");
    command->add_option("--timeout", chaos_.timeout_seconds, "For each run; then all its processes are killed")
        ->capture_default_str()
        ->check(between(0.1, 1e7))
        ->type_name("SECONDS");
    add_chaos_matrix(*command);
    command->add_option("--keep", chaos_.keep_in, "A folder for the run directories, which are deleted otherwise");
    command->add_option("--json", chaos_.json_path, "Write what was seen to a file");
    command->add_option("--junit", chaos_.junit_path, "The same for build servers");
    command->callback([this] { action_ = [this] { return chaos(files_, chaos_, console_); }; });
  }

  void add_doctor() {
    CLI::App* command = app_.add_subcommand(
        "doctor",
        "Show what this machine can train on, what is wrong with it, and what to do about that. Exit code: 0 training "
        "can "
        "run on GPUs, or on CPUs where there are none; 1 there are GPUs that cannot be used; 2 wrong usage");
    command->add_flag("--json", doctor_.as_json, "As JSON");
    command->callback([this] { action_ = [this] { return doctor(doctor_, console_); }; });
  }

  void add_chaos_matrix(CLI::App& command) {
    const auto add_step = [&](const char* name, std::int64_t& step, const char* what) {
      command.add_option(name, step, what)->capture_default_str()->check(whole_from(0));
    };
    command.add_option("--matrix-replicas", chaos_.matrix_replicas, "Of matrix and pairs: for {replicas}, such as 2,4")
        ->delimiter(',')
        ->capture_default_str()
        ->check(CLI::Range(1, 64).description(""));
    add_step("--step", chaos_.step, "Of matrix and pairs: a step that training gets to");
    add_step("--savepoint-step", chaos_.savepoint_step,
             "Of matrix and pairs: where a savepoint is written, older ones prune");
    add_step("--snapshot-step", chaos_.snapshot_step, "Of matrix and pairs: where a memory snapshot is made");
    command.add_option("--sample", chaos_.sample, "Of matrix and pairs: so many of its cases, drawn from --seed")
        ->check(whole_from(1));
  }

  // True where there is none, too: CLI11 says that one is missing, and not which one it does not know.
  bool knows_command_of(const std::vector<std::string>& arguments) {
    if (arguments.empty() || arguments.front().starts_with('-')) return true;
    const std::vector<CLI::App*> commands = app_.get_subcommands([](CLI::App*) { return true; });
    return std::any_of(commands.begin(), commands.end(),
                       [&](const CLI::App* command) { return command->get_name() == arguments.front(); });
  }

  // What follows the first "--" behind `command` is the program's own, options and further "--" too.
  static void take_program(std::vector<std::string>& arguments, const std::string& command,
                           std::vector<std::string>& program) {
    const auto mark = std::find(arguments.begin(), arguments.end(), "--");
    if (arguments.empty() || arguments.front() != command || mark == arguments.end()) return;
    program.assign(mark + 1, arguments.end());
    arguments.erase(mark, arguments.end());
  }

  FileSystem& files_;
  Console& console_;
  CLI::App app_{
      "Runs programs so that they survive failures, shows and steers live runs, and handles files of named arrays: "
      "Holdfast's savepoints, and those of other frameworks.",
      "holdfast"};
  Action action_;
  InspectOptions inspect_;
  std::string verify_path_;
  DiffOptions diff_;
  StatsOptions stats_;
  ConvertOptions convert_;
  PruneOptions prune_;
  RunOptions run_;
  StatusOptions status_;
  ScaleOptions scale_;
  SnapshotOptions snapshot_;
  ReportOptions report_;
  ChaosOptions chaos_;
  DoctorOptions doctor_;
};

}  // namespace

int run_command(const std::vector<std::string>& arguments, FileSystem& files, Console& console) {
  try {
    int exit_code = kNotDone;
    Parser parser(files, console);
    const Action action = parser.parse(arguments, exit_code);
    return action ? action() : exit_code;
  } catch (const std::bad_alloc&) {
    console.problems << "holdfast: no memory left; free some memory and try again\n";
  } catch (const Error& error) {
    // Our own sentences are shorter; text from an unknown file may not be.
    constexpr std::size_t kMaxSentenceBytes = 8192;
    console.problems << "holdfast: " << shortened(printable(error.what()), kMaxSentenceBytes) << "\n";
  } catch (const std::exception& error) {
    console.problems << "holdfast: this failed in a way that nobody thought of (" << printable(error.what())
                     << "); please report it, with the command and its files\n";
  }
  return kNotDone;
}

}  // namespace holdfast::cli
