// Every process of a program makes the same supervise() calls. The first process becomes the watchdog in each. A
// replica trains in the call that it was started for, and returns from earlier ones what the first process got.
// docs/decisions/runs.md

#include "holdfast/train/supervise.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "compute/cublas_workspace.h"
#include "holdfast/base/cores.h"
#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/log.h"
#include "holdfast/base/threads.h"
#include "holdfast/recovery/faults.h"
#include "holdfast/recovery/launch.h"
#include "holdfast/recovery/run_program.h"
#include "holdfast/recovery/watchdog.h"
#include "holdfast/recovery/worker.h"
#include "holdfast/train/memory_savepoint.h"
#include "train/context/devices.h"
#include "train/context/other_choices.h"
#include "train/context/replica_context.h"
#include "train/state/run_results.h"
#include "train/supervise/program_calls.h"
#include "train/supervise/run_choices.h"
#include "train/supervise/supervise_alone.h"
#include "train/supervise/supervise_worker.h"

namespace holdfast {
namespace {

// A process may start slowly while many others start, too.
constexpr std::chrono::minutes kJoinTimeout(5);
constexpr const char* kOutOfMemory =
    "memory ran out (std::bad_alloc); take a smaller batch or fewer replicas, or give the processes more memory";
constexpr const char* kSameCalls =
    "each process of a program must make the same supervise() calls in the same order; let them depend on nothing that "
    "differs between processes (is_replica_process()) or changes (files, time, random numbers)";

static_assert(kExitStopped == recovery::kExitStopped && kExitFailed == recovery::kExitUnrecoverable);

// Saves a state that the replicas could no longer write.
void save_what_is_left(const SuperviseOptions& options, std::int64_t step, std::span<const std::byte> image) {
  try {
    const std::optional<std::string> path = save_from_memory(options.run_directory, step, image);
    if (path) log(LogLevel::info, fmt::format("the newest state in memory was saved as {}", *path));
  } catch (const std::exception& failure) {
    log(LogLevel::error, std::string("the newest state in memory could not be saved: ") + failure.what());
  }
}

// What does not depend on the run's choices: how its replicas are made.
struct RunPlan {
  const SuperviseOptions& options;
  recovery::HostOfRun place;
  std::vector<std::string> command;
  AssignedCalls calls;
  ReplicaDevices devices = devices_of(options);
  // They are those of this host. What a launcher says counts for a run over several alone.
  int replicas = devices.replicas != 0 ? devices.replicas
                                       : (place.hosts > 1 ? place.replicas : std::nullopt).value_or(core_count());

  int of_all_hosts() const { return replicas * place.hosts; }
};

// Hosts take turns (WatchdogOptions::hosts).
std::string device_of_slot(const RunPlan& plan, int slot) {
  const int on_its_host = slot / plan.place.hosts;
  return plan.devices.names.empty() ? fmt::format("cpu:{}", on_its_host)
                                    : plan.devices.names.at(static_cast<std::size_t>(on_its_host));
}

std::vector<std::string> variables_of(const RunPlan& plan, const recovery::NewProcess& process) {
  // HOLDFAST_RANK, since a launcher of this program may have set RANK for every process.
  // HOLDFAST_START was for this run. It is emptied so that programs that a replica starts do not start anew.
  std::vector<std::string> variables{fmt::format("HOLDFAST_RANK={}", process.rank),
                                     device_variable(device_of_slot(plan, process.device_slot)),
                                     std::string(recovery::kStartVariable) + "="};
  // So is this: what a replica starts is not a host of the run.
  if (plan.place.hosts > 1) variables.emplace_back("HOLDFAST_NNODES=1");
  // Before CUDA starts in the replica, for an application that computes with cuBLAS, as LibTorch does.
  if (plan.devices.are_cuda() && std::getenv(compute::kCublasWorkspaceVariable) == nullptr) {
    variables.push_back(fmt::format("{}={}", compute::kCublasWorkspaceVariable, compute::kCublasWorkspace));
  }
  return variables;
}

// For sentences about the call that a replica was started for.
std::string name_of_call(std::size_t earlier_calls, const std::string& run_directory) {
  return fmt::format("call {} of supervise(), for the run directory {}", earlier_calls + 1, run_directory);
}

// Processes of other hosts may have another working directory.
std::string run_directory_of(const RunPlan& plan) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(plan.options.run_directory, error);
  return plan.place.hosts == 1 || error ? plan.options.run_directory : absolute.lexically_normal().string();
}

// A run over several hosts names all devices.
std::vector<std::string> names_of_devices(const RunPlan& plan) {
  std::vector<std::string> names = plan.devices.names;
  if (plan.place.hosts == 1 || !names.empty()) return names;
  for (int slot = 0; slot < plan.of_all_hosts(); slot += plan.place.hosts) names.push_back(device_of_slot(plan, slot));
  return names;
}

// The options of this host.
recovery::WatchdogOptions watchdog_options(const RunPlan& plan, const RunChoices& choices) {
  const SuperviseOptions& options = plan.options;
  const bool is_other_program = !options.replica_executable.empty();
  return {.replicas = plan.replicas,
          .max_replicas = std::min(choices.shards, recovery::kMaxReplicas),
          .devices = names_of_devices(plan),
          .recovery = options.recovery,
          .run_directory = run_directory_of(plan),
          .command = plan.command,
          .executable = is_other_program ? options.replica_executable : recovery::WatchdogOptions{}.executable,
          .worker_config = worker_config(options, choices, plan.calls),
          .registration = {.call = fmt::format("{}, which it was started for",
                                               name_of_call(plan.calls.earlier.size(), options.run_directory)),
                           .advice = kSameCalls},
          .variables_of = [&plan](const recovery::NewProcess& process) { return variables_of(plan, process); },
          .when_unfinished = [&options](std::int64_t step,
                                        std::span<const std::byte> image) { save_what_is_left(options, step, image); }};
}

// Called under the lock of the run directory, so that no other run begins there meanwhile.
recovery::WatchdogOptions begin_run(const RunPlan& plan) {
  try {
    const RunChoices choices = settle_choices(plan.options, plan.of_all_hosts());
    check_numbers(choices, plan.of_all_hosts(), recovery::kMaxReplicas);
    if (plan.devices.are_cuda()) require_same_replicas(choices, plan.of_all_hosts(), plan.options);
    record_choices(plan.options, choices, true);
    return watchdog_options(plan, choices);
  } catch (const OtherChoices& failure) {
    throw recovery::OtherChoices(failure.what());
  }
}

std::vector<std::string> command_of_replicas(int argc, char** argv, const SuperviseOptions& options) {
  if (options.replica_executable.empty() && !options.replica_arguments.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "replica_arguments were given without replica_executable; name the program that is to get them");
  }
  if (!options.replica_arguments.empty()) return options.replica_arguments;
  if (!options.replica_executable.empty()) return {options.replica_executable};
  return {argv, argv + argc};
}

// Refuses options that can never work before an earlier run is put aside.
void check_options(const RunPlan& plan) {
  const int shards = plan.options.shards == 0 ? plan.of_all_hosts() : plan.options.shards;
  const RunChoices asked{.seed = plan.options.seed,
                         .shards = shards,
                         .threads_per_shard = plan.options.threads_per_shard,
                         .reduction = plan.options.reduction,
                         .first_replicas = plan.of_all_hosts()};
  if (plan.options.shards > 0) check_numbers(asked, plan.of_all_hosts(), recovery::kMaxReplicas);
  // With the numbers that were asked for; those of the run may differ and are checked later. What concerns all hosts
  // together is checked by run_on_hosts().
  if (plan.place.hosts == 1) recovery::check_options(watchdog_options(plan, asked));
}

recovery::AskedStart asked_start(const SuperviseOptions& options) {
  return recovery::start_asked_for(options.start, options.start_token);
}

// A fresh start would put the run aside, but training alone writes nothing.
int train_alone_from_newest_state(const SuperviseOptions& options, const std::function<void(Replica&)>& train) {
  const recovery::AskedStart start = asked_start(options);
  if (start.start == Start::fresh) {
    log(LogLevel::warning, fmt::format("{} has no effect on training alone, which begins with the newest state in {} "
                                       "and leaves it there; give another run directory to begin anew",
                                       start.asked_by, options.run_directory));
  }
  return train_alone(options, train);
}

recovery::RunOutcome watch(const RunPlan& plan, const recovery::AskedStart& start) {
  check_options(plan);
  const recovery::OwnedRun::Options how{.copies = plan.options.savepoint_copies, .how = start};
  const auto begin = [&] { return begin_run(plan); };
  if (plan.place.hosts == 1) {
    return recovery::run_watchdog(recovery::OwnedRun::take(plan.options.run_directory, how), begin);
  }
  // Nothing of it depends on choices but what the first host sends to all.
  return recovery::run_on_hosts(
      {.options = watchdog_options(plan, {.shards = plan.of_all_hosts()}), .how = how, .begin = begin});
}

// Whether a new process would fail in the same way.
// An unknown cause is worth another try: restarts are limited anyway.
bool is_unrecoverable(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::invalid_file:
    case ErrorCode::not_found:
    case ErrorCode::refused:
    case ErrorCode::disk_full:
    case ErrorCode::incompatible:
    case ErrorCode::not_finite:
    case ErrorCode::unavailable:
    case ErrorCode::unsupported:
      return true;
    default:
      return false;
  }
}

// Without this check the other replicas would wait for it, or the run would end without having trained.
void require_generation(const recovery::Worker& worker) {
  if (worker.generation() >= 0) return;
  throw Error(ErrorCode::invalid_argument,
              "the training function returned without a call of fit(), evaluate() or predict() of a Trainer, which "
              "each replica has to make; move code that needs no replicas before or after supervise()");
}

int train_as_worker(recovery::Worker& worker, const SuperviseOptions& options,
                    const std::function<void(Replica&)>& train) {
  try {
    if (!train) {
      throw Error(ErrorCode::invalid_argument,
                  "supervise() has no training function in a replica; give it one, or give the replicas a program of "
                  "their own (SuperviseOptions::replica_executable)");
    }
    Replica replica(context_of(worker, options));
    train(replica);
    require_generation(worker);
    // From here on a replica may take long without steps, while it frees memory.
    worker.enter(TrainingPhase::finishing, 0);
    keep_results(*replica.shared_context());
    worker.faults().reach(FaultPoint::shutdown, -1);
    worker.report_finished();
    return 0;
  } catch (const StopRequested&) {
    return kExitStopped;
  } catch (const Undecided& failure) {
    worker.report_failure(failure.what(), true);
  } catch (const OtherChoices& failure) {
    worker.report_other_choices(failure.what());
  } catch (const Error& failure) {
    worker.report_failure(failure.what(), is_unrecoverable(failure.code()));
  } catch (const std::system_error& failure) {
    // Thrown by a std::thread that was not started by start_thread().
    const bool is_of_a_limit = failure.code() == std::errc::resource_unavailable_try_again;
    worker.report_failure(
        is_of_a_limit ? start_error(EAGAIN, "a thread that the training needs").what() : failure.what(), false);
  } catch (const std::bad_alloc&) {
    worker.report_exception(kOutOfMemory);
  } catch (const std::exception& failure) {
    worker.report_exception(failure.what());
  } catch (...) {
    worker.report_exception("something that is not a std::exception");
  }
  return kExitFailed;
}

// The calls of this process; see program_calls.h.
class Program {
 public:
  static Program& own() {
    static Program program;
    return program;
  }

  int supervise(int argc, char** argv, const SuperviseOptions& options, const std::function<void(Replica&)>& train) {
    if (is_in_call_.exchange(true)) {
      throw Error(ErrorCode::invalid_argument,
                  "supervise() was called within a training function, or while another thread's call runs; call it in "
                  "main(), one call after the other");
    }
    struct Leave {
      std::atomic<bool>& is_in_call;
      ~Leave() { is_in_call = false; }
    } const leave{is_in_call_};
    if (!is_replica_process()) return supervise_in_first(argc, argv, options, train);
    try {
      return supervise_in_replica(options, train);
    } catch (const std::exception& failure) {
      log(LogLevel::error, failure.what());
      std::exit(kExitFailed);
    }
  }

 private:
  // Constructs first what the destructor needs, so that it is destroyed later.
  Program() { posix_file_system(); }

  // Without this report the exit of a replica would say nothing, and the watchdog would start others that end in the
  // same way.
  ~Program() {
    end_fresh_start();
    if (!is_own_call_due_) return;
    worker_->report_failure(
        fmt::format("ended without {}, which it was started for; {}",
                    name_of_call(calls_of(*worker_)->earlier.size(), worker_->run_directory()), kSameCalls),
        true);
  }

  // Only when each run has finished. Another run may belong to another process, or must go on.
  void end_fresh_start() const {
    const auto has_finished = [](const ProgramCall& call) { return call.exit_code == 0; };
    if (first_directory_.empty() || is_stopped_ || !std::all_of(calls_.begin(), calls_.end(), has_finished)) return;
    try {
      recovery::end_fresh_start(first_directory_);
    } catch (const std::exception& failure) {
      log(LogLevel::warning, fmt::format("the end of the fresh start could not be recorded in {}: {}; the next start "
                                         "of the program goes on with it",
                                         first_directory_, failure.what()));
    }
  }

  int supervise_in_first(int argc, char** argv, const SuperviseOptions& options,
                         const std::function<void(Replica&)>& train) {
    ProgramCall call = call_of(options.run_directory);
    // The result is passed to the replicas of later calls, which return it from this call.
    call.exit_code = start(argc, argv, options, train, call);
    is_stopped_ = is_stopped_ || call.exit_code == kExitStopped;
    calls_.push_back(call);
    return call.exit_code;
  }

  // A fresh start that was interrupted goes on. Otherwise the runs that it did not reach would be those from before it.
  recovery::AskedStart start_of_call(const SuperviseOptions& options) {
    recovery::AskedStart start = asked_start(options);
    if (first_directory_.empty()) {
      first_directory_ = options.run_directory;
      if (start.start == Start::fresh) {
        if (start.token.empty()) start.token = recovery::new_token();
        start.has_later_runs = true;
        token_ = start.token;
      }
      return start;
    }
    if (start.start == Start::fresh) {
      if (start.token.empty()) start.token = token_;
      return start;
    }
    if (!start.asked_by.empty()) return start;
    const std::string interrupted = recovery::interrupted_fresh_start(first_directory_);
    if (interrupted.empty()) return start;
    return {.start = Start::fresh,
            .token = interrupted,
            .asked_by = "the fresh start of this program, which was interrupted,",
            .is_later_run = true};
  }

  int start(int argc, char** argv, const SuperviseOptions& options, const std::function<void(Replica&)>& train,
            const ProgramCall& call) {
    if (is_stopped_) {
      log(LogLevel::info,
          fmt::format("the run in {} does not start, since the program was asked to stop", options.run_directory));
      return kExitStopped;
    }
    const auto is_of_same_directory = [&](const ProgramCall& earlier) { return earlier.directory == call.directory; };
    if (std::any_of(calls_.begin(), calls_.end(), is_of_same_directory)) {
      log(LogLevel::error,
          fmt::format(
              "an earlier supervise() call of this program had the run directory {}; give each call one of its own",
              options.run_directory));
      return kExitFailed;
    }
    try {
      if (is_alone_asked_for(options.alone)) return train_alone_from_newest_state(options, train);
      const recovery::HostOfRun place = recovery::host_of_run();
      if (place.hosts > 1) require_first_call(options);
      const RunPlan plan{.options = options,
                         .place = place,
                         .command = command_of_replicas(argc, argv, options),
                         .calls = {.earlier = calls_, .own = call}};
      // The first host begins anew for all.
      const recovery::RunOutcome outcome =
          watch(plan, place.host == 0 ? start_of_call(options) : recovery::AskedStart{});
      is_stopped_ = outcome.is_stop_requested;
      const bool was_stopped = outcome.exit_code == kExitStopped;
      if (outcome.exit_code != 0) log(was_stopped ? LogLevel::info : LogLevel::error, outcome.sentence);
      return outcome.exit_code;
    } catch (const std::exception& failure) {
      log(LogLevel::error, failure.what());
      return kExitFailed;
    }
  }

  // Hosts would have to agree on which call they are in: one that comes back begins with the first.
  void require_first_call(const SuperviseOptions& options) const {
    if (calls_.empty()) return;
    throw Error(ErrorCode::unsupported,
                fmt::format("the program calls supervise() a second time, for {}, which it cannot on several hosts; "
                            "make each run a start of its own, or give HOLDFAST_NNODES=1 for runs of this host alone",
                            options.run_directory));
  }

  int supervise_in_replica(const SuperviseOptions& options, const std::function<void(Replica&)>& train) {
    // Joined at the first call, since a replica may return from several before its own.
    if (!worker_) worker_ = recovery::Worker::join(Deadline::after(kJoinTimeout));
    const std::size_t number = calls_.size();
    calls_.push_back(call_of(options.run_directory));
    const std::optional<AssignedCalls> assigned = calls_of(*worker_);
    // Under `holdfast run`, whose watchdog does not know the calls.
    if (!assigned) return number == 0 ? train_as_worker(*worker_, options, train) : refuse_second_call(options);
    const bool is_own = number == assigned->earlier.size();
    is_own_call_due_ = !is_own;
    const ProgramCall& expected = is_own ? assigned->own : assigned->earlier.at(number);
    if (calls_.back().directory != expected.directory) {
      worker_->report_failure(
          fmt::format("call {} of supervise() has the run directory {} in a replica, and another one "
                      "in the program's first process; {}",
                      number + 1, options.run_directory, kSameCalls),
          true);
      std::exit(kExitFailed);
    }
    if (!is_own) return expected.exit_code;
    // The code after the call is for the first process.
    std::exit(train_as_worker(*worker_, options, train));
  }

  int refuse_second_call(const SuperviseOptions& options) const {
    worker_->report_failure(fmt::format("the program calls supervise() a second time, for {}, which it cannot under "
                                        "`holdfast run`; start the program by itself",
                                        options.run_directory),
                            true);
    return kExitFailed;
  }

  std::atomic<bool> is_in_call_ = false;
  bool is_stopped_ = false;
  // For the program's first process, whose runs start anew together: the directory of the first run, and the token of
  // a fresh start that was asked for.
  std::string first_directory_{};
  std::string token_{};
  std::vector<ProgramCall> calls_;  // that have returned; in a replica also the one under way
  // Only in a replica, until its process ends.
  std::unique_ptr<recovery::Worker> worker_;
  bool is_own_call_due_ = false;
};

}  // namespace

bool is_replica_process() {
  return recovery::is_worker();
}

int supervise(int argc, char** argv, const SuperviseOptions& options, const std::function<void(Replica&)>& train) {
  if (options.recovery.log_level) set_log_level(*options.recovery.log_level);
  return Program::own().supervise(argc, argv, options, train);
}

}  // namespace holdfast
