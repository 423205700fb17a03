#include "holdfast/train/supervise.h"

#include <sched.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/recovery/faults.h"
#include "holdfast/recovery/watchdog.h"
#include "holdfast/recovery/worker.h"
#include "train/place.h"

namespace holdfast {
namespace {

using nlohmann::json;

static_assert(kExitStopped == recovery::kExitStopped && kExitFailed == recovery::kExitUnrecoverable);

// The run's fixed choices, kept from its first start in RUN_DIRECTORY/run.json, and handed to every replica.
struct RunChoices {
  std::uint64_t seed = 0;
  int shards = 1;
  int threads_per_shard = 1;
};

int core_count() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? std::max(1, CPU_COUNT(&cores)) : 1;
}

void check_devices(const SuperviseOptions& options) {
  if (options.kind == DeviceKind::cuda) {
    throw Error(ErrorCode::unavailable,
                "CUDA devices were asked for, but this build of Holdfast has no CUDA back end; use DeviceKind::cpu");
  }
  if (!options.devices.empty() && options.replicas != 0 &&
      static_cast<int>(options.devices.size()) != options.replicas) {
    throw Error(ErrorCode::invalid_argument, std::to_string(options.devices.size()) + " devices are listed for " +
                                                 std::to_string(options.replicas) +
                                                 " replicas; leave one of the two out");
  }
  for (const std::string& device : options.devices) {
    const bool is_cpu = device.starts_with("cpu:") && device.size() > 4 &&
                        std::all_of(device.begin() + 4, device.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!is_cpu)
      throw Error(ErrorCode::unavailable, "there is no device \"" + device + "\"; this build knows cpu:0, cpu:1, ...");
  }
}

int replica_count(const SuperviseOptions& options) {
  check_devices(options);
  if (!options.devices.empty()) return static_cast<int>(options.devices.size());
  return options.replicas == 0 ? core_count() : options.replicas;
}

std::string choices_path(const SuperviseOptions& options) {
  return options.run_directory + "/run.json";
}

template <class Number>
void require_same(const char* name, Number recorded, Number asked, const std::string& path) {
  if (recorded == asked) return;
  throw Error(ErrorCode::incompatible, "the run was started with " + std::string(name) + " " +
                                           std::to_string(recorded) + " (" + path + "), and its bits depend on it; " +
                                           std::to_string(asked) + " needs another run directory");
}

RunChoices recorded_choices(const std::string& path) {
  try {
    const json object = json::parse(read_text_file(posix_file_system(), path));
    return {.seed = object.at("seed").get<std::uint64_t>(),
            .shards = object.at("shards").get<int>(),
            .threads_per_shard = object.at("threads_per_shard").get<int>()};
  } catch (const json::exception& failure) {
    throw Error(ErrorCode::invalid_file,
                path + " cannot be read: " + failure.what() + "; restore it or use another run directory");
  }
}

void require_same_choices(const RunChoices& recorded, const RunChoices& asked, const std::string& path) {
  require_same("seed", recorded.seed, asked.seed, path);
  require_same("shards", recorded.shards, asked.shards, path);
  require_same("threads_per_shard", recorded.threads_per_shard, asked.threads_per_shard, path);
}

// Those of the first start; options that contradict them are refused.
RunChoices settle_choices(const SuperviseOptions& options, int replicas) {
  RunChoices choices{.seed = options.seed, .shards = options.shards, .threads_per_shard = options.threads_per_shard};
  const std::string path = choices_path(options);
  if (posix_file_system().exists(path)) {
    const RunChoices recorded = recorded_choices(path);
    if (choices.shards == 0) choices.shards = recorded.shards;
    require_same_choices(recorded, choices, path);
  }
  if (choices.shards == 0) choices.shards = replicas;
  return choices;
}

// To be called by the owner of the run directory: another program may have begun a run there since the choices were
// settled.
void record_choices(const SuperviseOptions& options, const RunChoices& choices) {
  const std::string path = choices_path(options);
  if (posix_file_system().exists(path)) return require_same_choices(recorded_choices(path), choices, path);
  const json object = {
      {"seed", choices.seed}, {"shards", choices.shards}, {"threads_per_shard", choices.threads_per_shard}};
  const std::string text = object.dump(1) + "\n";
  write_whole_file(posix_file_system(), path, std::as_bytes(std::span(text)));
}

void check_numbers(const RunChoices& choices, int replicas) {
  if (replicas < 1 || replicas > recovery::kMaxReplicas) {
    throw Error(ErrorCode::invalid_argument, std::to_string(replicas) + " replicas were asked for; 1 to " +
                                                 std::to_string(recovery::kMaxReplicas) + " are possible");
  }
  if (choices.threads_per_shard < 1) throw Error(ErrorCode::invalid_argument, "threads_per_shard must be at least 1");
  if (choices.shards < replicas) {
    throw Error(ErrorCode::invalid_argument,
                "there are " + std::to_string(replicas) + " replicas for " + std::to_string(choices.shards) +
                    " shards; a replica computes at least one shard, so use at most as many replicas");
  }
}

// Longer than the watchdog needs to find who hangs: a collective's own deadline is the last resort, and names a victim
// only.
std::chrono::milliseconds collective_timeout(const SuperviseOptions& options) {
  return 4 * std::max(options.hang_after, options.start_timeout);
}

recovery::RunOutcome watch(int argc, char** argv, const SuperviseOptions& options) {
  const int replicas = replica_count(options);
  const RunChoices choices = settle_choices(options, replicas);
  check_numbers(choices, replicas);
  for (const std::string& fault : options.faults) recovery::parse_fault(fault, replicas);
  const json config = {{"seed", choices.seed},
                       {"shards", choices.shards},
                       {"threads_per_shard", choices.threads_per_shard},
                       {"workers", std::max(1, core_count() / replicas / choices.threads_per_shard)},
                       {"saving_threads", std::max(1, core_count() / replicas)},
                       {"savepoint_copies", options.savepoint_copies},
                       {"accept_other_arithmetic", options.accept_other_arithmetic},
                       {"start_timeout_ms", options.start_timeout.count()},
                       {"collective_timeout_ms", collective_timeout(options).count()}};
  return recovery::run_watchdog({.replicas = replicas,
                                 .run_directory = options.run_directory,
                                 .command = std::vector<std::string>(argv, argv + argc),
                                 .worker_config = config.dump(),
                                 .max_restarts = options.max_restarts,
                                 .restart_window = options.restart_window,
                                 .hang_after = options.hang_after,
                                 .start_timeout = options.start_timeout,
                                 .stop_grace = options.stop_grace,
                                 .faults = options.faults,
                                 .when_owned = [&] { record_choices(options, choices); }});
}

recovery::Phase to_recovery(TrainingPhase phase) {
  switch (phase) {
    case TrainingPhase::starting:
      return recovery::Phase::starting;
    case TrainingPhase::computing:
      return recovery::Phase::computing;
    case TrainingPhase::waiting_for_peers:
      return recovery::Phase::waiting_for_peers;
    case TrainingPhase::updating:
      return recovery::Phase::updating;
    case TrainingPhase::saving:
      return recovery::Phase::saving;
    case TrainingPhase::callbacks:
      return recovery::Phase::callbacks;
    case TrainingPhase::evaluating:
      return recovery::Phase::evaluating;
    case TrainingPhase::finishing:
      return recovery::Phase::finishing;
  }
  HOLDFAST_ASSERT(false);
}

recovery::FaultPhase to_recovery(FaultPoint point) {
  switch (point) {
    case FaultPoint::compute:
      return recovery::FaultPhase::compute;
    case FaultPoint::reduce:
      return recovery::FaultPhase::reduce;
    case FaultPoint::update:
      return recovery::FaultPhase::update;
    case FaultPoint::save:
      return recovery::FaultPhase::save;
  }
  HOLDFAST_ASSERT(false);
}

class WorkerSupervision final : public Supervision {
 public:
  explicit WorkerSupervision(recovery::Worker& worker) : worker_(worker) {}

  void enter(TrainingPhase phase, std::int64_t step) override { worker_.enter(to_recovery(phase), step); }
  void reach(FaultPoint point, std::int64_t step) override { worker_.faults().reach(to_recovery(point), step); }
  bool is_stop_requested() const override { return worker_.stop_requested(); }
  void report_event(const std::string& event, const std::string& detail) override {
    worker_.report_event(event, detail);
  }

 private:
  recovery::Worker& worker_;
};

std::vector<RestartRecord> restart_records(const recovery::Worker& worker) {
  std::vector<RestartRecord> records;
  for (const recovery::Restart& restart : worker.restarts()) {
    records.push_back({restart.generation, restart.rank, restart.cause, restart.detected_unix_seconds, restart.step});
  }
  return records;
}

std::shared_ptr<Replica::Place> place_of(recovery::Worker& worker) {
  const json config = json::parse(worker.config());
  auto place = std::make_shared<Replica::Place>();
  place->rank = worker.rank();
  place->size = worker.size();
  place->shards = config.at("shards").get<int>();
  place->threads_per_shard = config.at("threads_per_shard").get<int>();
  place->workers = config.at("workers").get<int>();
  place->saving_threads = config.at("saving_threads").get<int>();
  place->generation = worker.generation();
  place->seed = config.at("seed").get<std::uint64_t>();
  place->run_directory = worker.run_directory();
  place->savepoint_copies = config.at("savepoint_copies").get<std::vector<std::string>>();
  place->accept_other_arithmetic = config.at("accept_other_arithmetic").get<bool>();
  place->collective_timeout = std::chrono::milliseconds(config.at("collective_timeout_ms").get<std::int64_t>());
  place->restarts = restart_records(worker);
  place->supervision = std::make_shared<WorkerSupervision>(worker);
  const auto start_timeout = std::chrono::milliseconds(config.at("start_timeout_ms").get<std::int64_t>());
  place->connect = [&worker, start_timeout](const MemoryCommunicatorShape& shape) -> std::unique_ptr<Communicator> {
    recovery::Worker::Arena arena = worker.exchange_arenas(shape.arena_bytes(), Deadline::after(start_timeout));
    return std::make_unique<MemoryCommunicator>(shape, std::move(arena.own), std::move(arena.all));
  };
  return place;
}

// Failures that a new process would meet again.
bool is_unrecoverable(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::invalid_file:
    case ErrorCode::not_found:
    case ErrorCode::disk_full:
    case ErrorCode::incompatible:
    case ErrorCode::unavailable:
    case ErrorCode::unsupported:
      return true;
    default:
      return false;
  }
}

int train_as_worker(const std::function<void(Replica&)>& train) {
  std::unique_ptr<recovery::Worker> worker;
  try {
    worker = recovery::Worker::join(Deadline::after(std::chrono::minutes(5)));
    Replica replica(place_of(*worker));
    train(replica);
    worker->enter(recovery::Phase::finishing, 0);
    worker->report_finished();
    return 0;
  } catch (const StopRequested&) {
    return kExitStopped;
  } catch (const Error& failure) {
    // Who was cancelled is a victim of another replica's failure, and has nothing to report.
    if (worker && failure.code() != ErrorCode::cancelled)
      worker->report_failure(failure.what(), is_unrecoverable(failure.code()));
  } catch (const std::exception& failure) {
    if (worker) worker->report_failure(failure.what(), false);
  } catch (...) {
    if (worker) worker->report_failure("the training function threw something that is no std::exception", false);
  }
  return kExitFailed;
}

}  // namespace

bool is_replica_process() {
  return recovery::is_worker();
}

int supervise(int argc, char** argv, const SuperviseOptions& options, const std::function<void(Replica&)>& train) {
  if (is_replica_process()) return train_as_worker(train);
  try {
    const recovery::RunOutcome outcome = watch(argc, argv, options);
    const bool was_stopped = outcome.exit_code == kExitStopped;
    if (outcome.exit_code != 0) log(was_stopped ? LogLevel::info : LogLevel::error, outcome.sentence);
    return outcome.exit_code;
  } catch (const std::exception& failure) {
    log(LogLevel::error, failure.what());
    return kExitFailed;
  }
}

}  // namespace holdfast
