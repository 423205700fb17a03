#include "command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <new>

#include "convert.h"
#include "diff.h"
#include "exit_code.h"
#include "inspect.h"
#include "live_run.h"
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
  }

  // None when all is said already, as by --help; `exit_code` then.
  Action parse(std::vector<std::string> arguments, int& exit_code) {
    take_program_of_run(arguments);
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
    command->callback([this] { action_ = [this] { return inspect(files_, inspect_, console_); }; });
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
        ->check(CLI::NonNegativeNumber);
    command->add_flag("--ignore-metadata", diff_.ignores_metadata, "Compare the arrays alone");
    command->callback([this] { action_ = [this] { return diff(files_, diff_, console_); }; });
  }

  void add_stats() {
    CLI::App* command =
        app_.add_subcommand("stats", "Show range, mean, norm, NaNs and a histogram of each array's finite values");
    command->add_option("FILE", stats_.path, kAnyFile)->required();
    command->add_flag("--json", stats_.as_json, "As JSON");
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
    const std::map<std::string, Compression> kinds = {
        {"fast", Compression::fast}, {"zstd", Compression::zstd}, {"none", Compression::none}};
    command
        .add_option("--compression", convert_.compression,
                    "Of a Holdfast file: fast (default), zstd, or none: the portable mode, which every HDF5 reads "
                    "without a plugin")
        ->transform(CLI::CheckedTransformer(kinds).description(""))
        ->type_name("fast|zstd|none");
    command.add_option("--level", convert_.zstd_level, "Of zstd: -7 (fastest) to 22 (smallest)")
        ->check(CLI::Range(-7, 22).description(""));
  }

  void add_prune() {
    CLI::App* command = app_.add_subcommand(
        "prune",
        "Delete the savepoints of a folder that no rule keeps, while no run writes there. The newest whole one and the "
        "best always stay. Exit code: 0 done, 1 one was damaged, 2 not done");
    format::RetentionPolicy& retention = prune_.retention;
    command->add_option("FOLDER", prune_.folder, "A run directory, or another folder of savepoints")->required();
    command->add_option("--keep-last", retention.keep_last, "The newest so many stay; 0: all")
        ->check(CLI::NonNegativeNumber);
    command->add_option("--keep-best", retention.keep_best, "So many with the best metric stay, too")
        ->check(CLI::NonNegativeNumber);
    command->add_option("--by", prune_.best_by, "The metric")->capture_default_str();
    const std::map<std::string, format::BestValue> directions = {{"min", format::BestValue::lowest},
                                                                 {"max", format::BestValue::highest}};
    command->add_option("--best", retention.best, "Which value of the metric is the best: min (default) or max")
        ->transform(CLI::CheckedTransformer(directions).description(""))
        ->type_name("min|max");
    command->add_option("--keep-every", retention.keep_every_steps, "All whose step is a multiple stay, too")
        ->check(CLI::NonNegativeNumber);
    command
        ->add_option("--max-bytes", retention.max_bytes,
                     "The oldest of those go until all fit (10MB, 2GiB), but never the newest or the best")
        ->transform(CLI::AsSizeValue(false));
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
    command->add_flag("--plain", watchdog.is_plain_program,
                      "The program knows nothing of Holdfast: exit code 0 is its end, any other makes all start again");
    command->add_option("--spares", watchdog.spares, "Further processes, ready to take the place of one at once")
        ->check(CLI::NonNegativeNumber);
    command
        ->add_option("--max-replicas", watchdog.max_replicas,
                     "As many as \"holdfast scale\" may ask for; of a program of the SDK at most its shards")
        ->check(CLI::Range(1, recovery::kMaxReplicas).description(""));
    command->add_option("--run-dir", watchdog.run_directory, "Journal and lock; what the program saves, too")
        ->capture_default_str();
    command->add_option("--max-restarts", watchdog.max_restarts, "Within ten minutes; one more ends the run")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
    add_recovery_choices(*command);
    add_run_times(*command);
    command->add_option("--inject", watchdog.faults, "A fault to make, such as rank=1,step=120,fault=kill; repeatable")
        ->allow_extra_args(false);
    command->callback([this] { action_ = [this] { return run(run_, console_); }; });
  }

  void add_recovery_choices(CLI::App& command) {
    using recovery::RecoverFrom;
    using recovery::WhenLost;
    const std::map<std::string, WhenLost> losses = {{"wait", WhenLost::wait}, {"shrink", WhenLost::shrink}};
    command
        .add_option("--when-lost", run_.watchdog.when_lost,
                    "Without a spare: wait for a new process, or shrink (default) until it is there")
        ->transform(CLI::CheckedTransformer(losses).description(""))
        ->type_name("wait|shrink");
    const std::map<std::string, RecoverFrom> sources = {{"survivors", RecoverFrom::survivors},
                                                        {"savepoint", RecoverFrom::savepoint}};
    command
        .add_option("--recover-from", run_.watchdog.recover_from,
                    "survivors (default) keep their state; savepoint: all start again")
        ->transform(CLI::CheckedTransformer(sources).description(""))
        ->type_name("survivors|savepoint");
  }

  void add_run_times(CLI::App& command) {
    const auto range = CLI::Range(0.001, 1e6).description("");
    const auto add = [&](const char* name, double& seconds, const char* what) {
      command.add_option(name, seconds, what)->capture_default_str()->check(range)->type_name("SECONDS");
    };
    command
        .add_option(
            "--hang-after", run_.hang_after_seconds,
            "Without progress; then a process is taken for hung. Default: by what it does and by its step times")
        ->check(range)
        ->type_name("SECONDS");
    add("--start-timeout", run_.start_timeout_seconds, "Without progress while it starts");
    add("--stop-grace", run_.stop_grace_seconds, "From SIGTERM until processes that have not left are killed");
  }

  // What follows the first "--" is the program's own, options and further "--" too.
  void take_program_of_run(std::vector<std::string>& arguments) {
    const auto mark = std::find(arguments.begin(), arguments.end(), "--");
    if (arguments.empty() || arguments.front() != "run" || mark == arguments.end()) return;
    run_.watchdog.command.assign(mark + 1, arguments.end());
    arguments.erase(mark, arguments.end());
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
  } catch (const std::exception& error) {
    console.problems << "holdfast: " << printable(error.what()) << "\n";
  }
  return kNotDone;
}

}  // namespace holdfast::cli
