#include "holdfast/train/supervise.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/base/whole_number.h"
#include "holdfast/recovery/faults.h"
#include "holdfast/recovery/faulty_file_system.h"
#include "holdfast/recovery/launch.h"
#include "holdfast/recovery/memory_snapshot.h"
#include "holdfast/recovery/watchdog.h"
#include "holdfast/recovery/worker.h"
#include "holdfast/train/memory_savepoint.h"
#include "train/devices.h"
#include "train/place.h"
#include "train/resume.h"
#include "train/snapshot.h"

namespace holdfast {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kMemoryTimeout(30);
constexpr int kMostThreadsPerShard = 4096;
constexpr std::size_t kSpareSnapshotBytes = std::size_t{256} * 1024;

static_assert(kExitStopped == recovery::kExitStopped && kExitFailed == recovery::kExitUnrecoverable);

// The run's fixed choices, kept from its first start in RUN_DIRECTORY/run.json, and handed to every replica.
struct RunChoices {
  std::uint64_t seed = 0;
  int shards = 1;
  int threads_per_shard = 1;
  Reduction reduction = Reduction::shard_order;
  int first_replicas = 1;  // what Reduction::fastest's bits depend on; others' do not
};

std::string choices_path(const SuperviseOptions& options) {
  return options.run_directory + "/run.json";
}

void require_same(const std::string& choice, const std::string& recorded, const std::string& asked,
                  const std::string& path) {
  if (recorded == asked) return;
  throw Error(ErrorCode::incompatible, "the run was started with " + choice + " " + recorded + " (" + path +
                                           "), and its bits depend on it; " + asked + " needs another run directory");
}

Error damaged_choices(const std::string& path, const std::string& why) {
  return Error(ErrorCode::invalid_file, path + " is damaged: " + why + "; restore it, or use another run directory");
}

template <class Number>
Number recorded_number(const json& object, const char* name, Number lowest, const std::string& path) {
  if (!object.contains(name)) throw damaged_choices(path, std::string("it has no \"") + name + "\"");
  const std::string text = object.at(name).dump(-1, ' ', true, json::error_handler_t::replace);
  const auto number = whole_number<Number>(text);
  if (number && *number >= lowest) return *number;
  throw damaged_choices(path, std::string("its \"") + name + "\" is " + shown_text(text, 40) +
                                  ", not a whole number from " + std::to_string(lowest) + " to " +
                                  std::to_string(std::numeric_limits<Number>::max()));
}

Reduction recorded_reduction(const json& object, const std::string& path) {
  const json recorded = object.value("reduction", json(name(Reduction::shard_order)));
  for (const Reduction reduction : {Reduction::shard_order, Reduction::fastest}) {
    if (recorded == name(reduction)) return reduction;
  }
  throw damaged_choices(
      path, "its \"reduction\" is " + shown_text(recorded.dump(-1, ' ', true, json::error_handler_t::replace), 40));
}

RunChoices recorded_choices(const std::string& path) {
  const json object = json::parse(read_text_file(posix_file_system(), path), nullptr, false);
  if (!object.is_object()) throw damaged_choices(path, "it is not a JSON object");
  return {.seed = recorded_number<std::uint64_t>(object, "seed", 0, path),
          .shards = recorded_number<int>(object, "shards", 1, path),
          .threads_per_shard = recorded_number<int>(object, "threads_per_shard", 1, path),
          .reduction = recorded_reduction(object, path),
          .first_replicas = object.contains("replicas") ? recorded_number<int>(object, "replicas", 1, path) : 1};
}

void require_same_choices(const RunChoices& recorded, const RunChoices& asked, const std::string& path) {
  const auto require = [&](const std::string& choice, const auto& value, const auto& other) {
    require_same(choice, std::to_string(value), std::to_string(other), path);
  };
  require("seed", recorded.seed, asked.seed);
  require("shards", recorded.shards, asked.shards);
  require("threads_per_shard", recorded.threads_per_shard, asked.threads_per_shard);
  require_same("reduction", std::string(name(recorded.reduction)), std::string(name(asked.reduction)), path);
}

// A start by the user. What becomes of the number of replicas afterwards is told in each generation.
void require_same_replicas(const RunChoices& choices, int replicas, const SuperviseOptions& options) {
  if (choices.reduction != Reduction::fastest || choices.first_replicas == replicas) return;
  const std::string sentence = "the run was started with " + std::to_string(choices.first_replicas) +
                               " replicas and Reduction::fastest (" + choices_path(options) +
                               "), so that its bits depend on their number, and would go on with " +
                               std::to_string(replicas);
  if (!options.accept_other_arithmetic) {
    throw Error(ErrorCode::incompatible,
                sentence + "; use as many as before, another run directory, or set accept_other_arithmetic");
  }
  log(LogLevel::warning, sentence + "; accepted");
}

// Those of the first start; options that contradict them are refused.
RunChoices settle_choices(const SuperviseOptions& options, int replicas) {
  RunChoices choices{.seed = options.seed,
                     .shards = options.shards,
                     .threads_per_shard = options.threads_per_shard,
                     .reduction = options.reduction,
                     .first_replicas = replicas};
  if (choices.shards < 0) {
    throw Error(ErrorCode::invalid_argument, "shards is " + std::to_string(choices.shards) +
                                                 "; it has to be 0, for as many as there are replicas, or more");
  }
  if (options.memory_snapshot_every < 0) {
    throw Error(ErrorCode::invalid_argument, "memory_snapshot_every is " +
                                                 std::to_string(options.memory_snapshot_every) +
                                                 "; it has to be a number of steps, or 0 for a choice by time");
  }
  const std::string path = choices_path(options);
  if (posix_file_system().exists(path)) {
    const RunChoices recorded = recorded_choices(path);
    if (choices.shards == 0) choices.shards = recorded.shards;
    choices.first_replicas = recorded.first_replicas;
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
  json object = {{"seed", choices.seed}, {"shards", choices.shards}, {"threads_per_shard", choices.threads_per_shard}};
  if (choices.reduction == Reduction::fastest) {
    object["reduction"] = name(choices.reduction);
    object["replicas"] = choices.first_replicas;
  }
  const std::string text = object.dump(1) + "\n";
  write_whole_file(posix_file_system(), path, std::as_bytes(std::span(text)));
}

void check_numbers(const RunChoices& choices, int replicas) {
  if (replicas < 1 || replicas > recovery::kMaxReplicas) {
    throw Error(ErrorCode::invalid_argument, std::to_string(replicas) + " replicas were asked for; 1 to " +
                                                 std::to_string(recovery::kMaxReplicas) + " are possible");
  }
  if (choices.threads_per_shard < 1 || choices.threads_per_shard > kMostThreadsPerShard) {
    throw Error(ErrorCode::invalid_argument, "threads_per_shard is " + std::to_string(choices.threads_per_shard) +
                                                 "; 1 to " + std::to_string(kMostThreadsPerShard) + " are possible");
  }
  if (choices.shards < replicas) {
    throw Error(ErrorCode::invalid_argument,
                "there are " + std::to_string(replicas) + " replicas for " + std::to_string(choices.shards) +
                    " shards; a replica computes at least one shard, so use at most as many replicas");
  }
}

// Longer than the watchdog needs to find who hangs: a collective's own deadline is the last resort, and names a victim
// only.
std::chrono::milliseconds collective_timeout(std::chrono::milliseconds patience) {
  return 4 * patience;
}

json worker_config(const SuperviseOptions& options, const RunChoices& choices) {
  return {{"seed", choices.seed},
          {"shards", choices.shards},
          {"threads_per_shard", choices.threads_per_shard},
          {"reduction", name(choices.reduction)},
          {"first_replicas", choices.first_replicas},
          {"precision", name(options.precision)},
          {"cores", recovery::core_count()},
          {"memory_snapshot_every", options.memory_snapshot_every},
          {"savepoint_copies", options.savepoint_copies},
          {"accept_other_arithmetic", options.accept_other_arithmetic}};
}

recovery::WhenLost to_recovery(WhenLost when_lost) {
  return when_lost == WhenLost::wait ? recovery::WhenLost::wait : recovery::WhenLost::shrink;
}

recovery::WhenSlow to_recovery(WhenSlow when_slow) {
  switch (when_slow) {
    case WhenSlow::report:
      return recovery::WhenSlow::report;
    case WhenSlow::deal:
      return recovery::WhenSlow::deal;
    case WhenSlow::replace:
      return recovery::WhenSlow::replace;
  }
  HOLDFAST_ASSERT(false);
}

recovery::RecoverFrom to_recovery(RecoverFrom recover_from) {
  return recover_from == RecoverFrom::survivors ? recovery::RecoverFrom::survivors : recovery::RecoverFrom::savepoint;
}

// What the replicas could not write any more.
void save_what_is_left(const SuperviseOptions& options, std::int64_t step, std::span<const std::byte> image) {
  if (options.recover_from == RecoverFrom::savepoint) return;
  try {
    const std::optional<std::string> path = save_from_memory(options.run_directory, step, image);
    if (path) log(LogLevel::info, "the newest state in memory was saved as " + *path);
  } catch (const std::exception& failure) {
    log(LogLevel::error, std::string("the newest state in memory could not be saved: ") + failure.what());
  }
}

// Those of the options first: an environment variable may add, never take away.
std::vector<std::string> all_faults(const SuperviseOptions& options, int ranks) {
  std::vector<std::string> faults = options.faults;
  const std::vector<std::string> added = recovery::faults_of_environment();
  faults.insert(faults.end(), added.begin(), added.end());
  for (const std::string& fault : faults) recovery::parse_fault(fault, ranks);
  return faults;
}

recovery::RunOutcome watch(int argc, char** argv, const SuperviseOptions& options) {
  const ReplicaDevices devices = devices_of(options);
  const int replicas = devices.replicas == 0 ? recovery::core_count() : devices.replicas;
  const RunChoices choices = settle_choices(options, replicas);
  check_numbers(choices, replicas);
  if (devices.are_cuda()) require_same_replicas(choices, replicas, options);
  const std::vector<std::string> faults = all_faults(options, replicas + options.spares);
  return recovery::run_watchdog(
      {.replicas = replicas,
       .max_replicas = std::min(choices.shards, recovery::kMaxReplicas),
       .spares = options.spares,
       .devices = devices.names,
       .when_lost = to_recovery(options.when_lost),
       .recover_from = to_recovery(options.recover_from),
       .when_slow = to_recovery(options.when_slow),
       .run_directory = options.run_directory,
       .command = std::vector<std::string>(argv, argv + argc),
       .worker_config = worker_config(options, choices).dump(),
       .max_restarts = options.max_restarts,
       .restart_window = options.restart_window,
       .place_rest = options.place_rest,
       .start_when_gone = options.start_when_gone.value_or(devices.are_cuda()),
       .hang_after = options.hang_after,
       .callback_timeout = options.callback_timeout,
       .start_timeout = options.start_timeout,
       .stop_grace = options.stop_grace,
       .faults = faults,
       .variables_of =
           [&](const recovery::NewProcess& process) {
             // Not RANK, which a launcher of this program may have set for all that it starts.
             const std::string device = devices.names.empty()
                                            ? "cpu:" + std::to_string(process.place)
                                            : devices.names.at(static_cast<std::size_t>(process.place));
             return std::vector{"HOLDFAST_RANK=" + std::to_string(process.rank), device_variable(device)};
           },
       .when_owned = [&] { record_choices(options, choices); },
       .when_unfinished = [&](std::int64_t step,
                              std::span<const std::byte> image) { save_what_is_left(options, step, image); }});
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
    case TrainingPhase::reading_data:
      return recovery::Phase::reading_data;
  }
  HOLDFAST_ASSERT(false);
}

recovery::FaultPhase to_recovery(FaultPoint point) {
  switch (point) {
    case FaultPoint::start:
      return recovery::FaultPhase::start;
    case FaultPoint::load:
      return recovery::FaultPhase::load;
    case FaultPoint::data:
      return recovery::FaultPhase::data;
    case FaultPoint::forward:
      return recovery::FaultPhase::forward;
    case FaultPoint::backward:
      return recovery::FaultPhase::backward;
    case FaultPoint::reduce:
      return recovery::FaultPhase::reduce;
    case FaultPoint::before_update:
      return recovery::FaultPhase::before_update;
    case FaultPoint::after_update:
      return recovery::FaultPhase::after_update;
    case FaultPoint::callback:
      return recovery::FaultPhase::callback;
    case FaultPoint::snapshot:
      return recovery::FaultPhase::snapshot;
    case FaultPoint::rendezvous:
      return recovery::FaultPhase::rendezvous;
    case FaultPoint::broadcast:
      return recovery::FaultPhase::broadcast;
  }
  HOLDFAST_ASSERT(false);
}

FaultTarget from_recovery(recovery::CorruptionTarget target) {
  switch (target) {
    case recovery::CorruptionTarget::loss:
      return FaultTarget::loss;
    case recovery::CorruptionTarget::gradient:
      return FaultTarget::gradient;
    case recovery::CorruptionTarget::weight:
      return FaultTarget::weight;
    case recovery::CorruptionTarget::slot:
      return FaultTarget::slot;
  }
  HOLDFAST_ASSERT(false);
}

class WorkerSupervision final : public Supervision {
 public:
  explicit WorkerSupervision(recovery::Worker& worker) : worker_(worker) {}

  void enter(TrainingPhase phase, std::int64_t step) override { worker_.enter(to_recovery(phase), step); }
  void regroup() override { worker_.regroup(); }
  void enter_background(const BackgroundWork& work) override {
    worker_.enter_background({.what = work.what, .bytes = work.bytes, .is_callback = work.is_callback});
  }
  void leave_background() override { worker_.leave_background(); }
  void reach(FaultPoint point, std::int64_t step) override { worker_.faults().reach(to_recovery(point), step); }
  void corrupt(FaultPoint point, std::int64_t step, const FloatsOf& floats) override;
  bool may_corrupt(FaultPoint point, std::int64_t step) override {
    return worker_.faults().may_corrupt(to_recovery(point), step);
  }
  double slowdown(std::int64_t step) override { return worker_.faults().slowdown(step); }
  bool is_stop_requested() const override { return worker_.stop_requested(); }
  bool is_regroup_requested() const override { return worker_.regroup_requested(); }
  bool is_savepoint_requested() const override { return worker_.savepoint_requested() > begun_savepoint_; }
  int begin_requested_savepoint() override { return begun_savepoint_ = worker_.savepoint_requested(); }
  void report_savepoint(int number, const std::string& path, std::int64_t step) override {
    worker_.report_savepoint(number, path, step);
  }
  void report_no_savepoint(int number, const std::string& why) override { worker_.report_no_savepoint(number, why); }
  void count_samples(std::int64_t samples) override { worker_.count_samples(samples); }
  void keep_in_memory(std::int64_t step, std::size_t bytes, const Write& write, const Accepts& accepts) override;
  void prepare_in_memory(std::size_t bytes) override { static_cast<void>(snapshots_for(bytes)); }
  std::optional<OutlivingMemory> begin_in_memory(std::int64_t step, std::size_t bytes) override;
  bool read_from_memory(const std::function<void(std::span<const std::byte>)>& read) override;
  void report_event(const std::string& event, const std::string& detail) override {
    worker_.report_event(event, detail);
  }

 private:
  recovery::MemorySnapshots& snapshots_for(std::size_t bytes);

  recovery::Worker& worker_;
  std::shared_ptr<recovery::MemorySnapshots> snapshots_;
  std::atomic<int> begun_savepoint_ = 0;  // the newest request that was
};

void WorkerSupervision::corrupt(FaultPoint point, std::int64_t step, const FloatsOf& floats) {
  const recovery::FaultPhase phase = to_recovery(point);
  while (const std::optional<recovery::Corruption> due = worker_.faults().corruption(phase, step)) {
    const std::string what = recovery::corrupt(*due, floats(from_recovery(due->target)));
    worker_.report_event("corruption_injected",
                         json{{"step", step}, {"target", to_string(due->target)}, {"what", what}}.dump());
  }
}

// The header grows with the history: not each snapshot should need new memory.
recovery::MemorySnapshots& WorkerSupervision::snapshots_for(std::size_t bytes) {
  if (!snapshots_ || snapshots_->capacity_bytes() < bytes) {
    snapshots_ = std::make_shared<recovery::MemorySnapshots>(
        worker_.request_snapshot_memory(bytes + bytes / 8 + kSpareSnapshotBytes, Deadline::after(kMemoryTimeout)));
    // Otherwise the first snapshot in each slot would take as long as three to seven others: 0.4 and 0.9 s instead of
    // 0.13 s for 494 MB, on 2 cores. No more than images fill: the rest may never be needed.
    snapshots_->find_memory(bytes);
  }
  return *snapshots_;
}

void WorkerSupervision::keep_in_memory(std::int64_t step, std::size_t bytes, const Write& write,
                                       const Accepts& accepts) {
  snapshots_for(bytes).write(worker_.generation(), step, bytes, write, accepts);
}

std::optional<OutlivingMemory> WorkerSupervision::begin_in_memory(std::int64_t step, std::size_t bytes) {
  recovery::MemorySnapshots& snapshots = snapshots_for(bytes);
  // Of the generation that the state is of: another one may have begun when it is there.
  const auto keep = [memory = snapshots_, step, generation = worker_.generation()](const Accepts& accepts) {
    return memory->finish(generation, step, accepts);
  };
  return OutlivingMemory{
      .bytes = snapshots.begin(bytes), .all = snapshots.memory(), .mapping = snapshots_, .keep = keep};
}

bool WorkerSupervision::read_from_memory(const std::function<void(std::span<const std::byte>)>& read) {
  const std::vector<SharedMemory> memories = worker_.take_snapshot_memories();
  std::optional<recovery::MemorySnapshots::Whole> newest;
  for (const SharedMemory& memory : memories) {
    const auto candidate = recovery::MemorySnapshots::newest(memory);
    if (candidate && (!newest || candidate->step > newest->step)) newest = candidate;
  }
  if (newest) read(newest->bytes);
  return newest.has_value();
}

std::vector<RestartRecord> restart_records(const recovery::Worker& worker) {
  std::vector<RestartRecord> records;
  for (const recovery::Restart& restart : worker.restarts()) {
    records.push_back({restart.generation, restart.rank, restart.cause, restart.detected_unix_seconds, restart.step});
  }
  return records;
}

void require_asked_kind(DeviceKind kind) {
  if (kind == DeviceKind::cpu || own_device() != "cpu") return;
  throw Error(ErrorCode::invalid_argument,
              "CUDA devices were asked for, and whoever started this process gave it none; name them, such as "
              "`holdfast run --devices cuda:0,cuda:1 -- PROGRAM`");
}

// The choices of a run whose watchdog knows none, as that of `holdfast run`: every replica settles the same ones, and
// records them if no other has.
class OwnChoices {
 public:
  OwnChoices(SuperviseOptions options, const recovery::Worker& worker) : options_(std::move(options)) {
    options_.run_directory = worker.run_directory();
    options_.replicas = worker.size();
    check_given_devices();
    require_asked_kind(options_.kind);
    check_precision(options_.precision, own_device() != "cpu");
    choices_ = settle_choices(options_, options_.replicas);
    check_numbers(choices_, options_.replicas);
    record_choices(options_, choices_);
  }

  json config() const { return worker_config(options_, choices_); }
  // Once all replicas have recorded theirs: two that started at once may both have been the first.
  void check() const {
    require_same_choices(recorded_choices(choices_path(options_)), choices_, choices_path(options_));
  }

 private:
  SuperviseOptions options_;
  RunChoices choices_;
};

// The watchdog deals what the members of a generation have told it; those of the next may have been started otherwise.
void require_same_shards(const Replica::Place& place) {
  if (place.dealt.empty()) return;
  const int dealt = std::accumulate(place.dealt.begin(), place.dealt.end(), 0);
  if (dealt == place.shards && static_cast<int>(place.dealt.size()) == place.size) return;
  throw Error(ErrorCode::incompatible, "the watchdog dealt " + std::to_string(dealt) + " shards to " +
                                           std::to_string(place.dealt.size()) + " replicas, and there are " +
                                           std::to_string(place.shards) + " for " + std::to_string(place.size) +
                                           "; start all replicas with the same options");
}

std::shared_ptr<Replica::Place> place_of(recovery::Worker& worker, const SuperviseOptions& options) {
  std::shared_ptr<const OwnChoices> own;
  if (worker.config().empty()) own = std::make_shared<OwnChoices>(options, worker);
  const json config = own ? own->config() : json::parse(worker.config());
  auto place = std::make_shared<Replica::Place>();
  place->shards = config.at("shards").get<int>();
  place->threads_per_shard = config.at("threads_per_shard").get<int>();
  place->seed = config.at("seed").get<std::uint64_t>();
  place->precision = precision_from_name(config.at("precision").get<std::string>());
  place->reduction = reduction_from_name(config.at("reduction").get<std::string>());
  place->first_replicas = config.at("first_replicas").get<int>();
  place->run_directory = worker.run_directory();
  place->savepoint_copies = config.at("savepoint_copies").get<std::vector<std::string>>();
  place->accept_other_arithmetic = config.at("accept_other_arithmetic").get<bool>();
  place->memory_snapshot_every = config.at("memory_snapshot_every").get<std::int64_t>();
  place->collective_timeout = collective_timeout(worker.patience());
  place->restarts = [&worker] { return restart_records(worker); };
  place->supervision = std::make_shared<WorkerSupervision>(worker);
  place->own_file_system = recovery::faulty_file_system(posix_file_system(), worker.faults());
  place->file_system = place->own_file_system.get();
  const int cores = config.at("cores").get<int>();
  place->cores = cores;
  place->device = own_device();
  // A device computes one shard after the other.
  const bool is_device = place->device != "cpu";
  place->most_workers = is_device ? 1 : std::max(1, cores / place->threads_per_shard);
  const auto move = [&worker, cores, is_device](Replica::Place& moved) {
    moved.rank = worker.rank();
    moved.size = worker.size();
    moved.generation = worker.generation();
    moved.dealt = worker.dealt_shards();
    require_same_shards(moved);
    moved.saving_threads = std::max(1, cores / moved.size);
    moved.workers = is_device ? 1 : std::max(1, cores / moved.size / moved.threads_per_shard);
  };
  move(*place);
  place->enter_generation = [&worker, move, own, &moved = *place](std::int64_t state_step) {
    worker.enter_generation(Deadline::after(moved.collective_timeout), state_step);
    if (own) own->check();
    move(moved);
  };
  place->connect = [&worker, &moved = *place](const MemoryCommunicatorShape& shape) -> std::unique_ptr<Communicator> {
    try {
      worker.report_work({.shards = shape.deal.of(shape.rank).count(), .at_once = moved.workers});
      recovery::Worker::Arena arena = worker.exchange_arenas(MemoryCommunicatorShape::kArenaBytes,
                                                             Deadline::after(worker.patience()), moved.blocks.get());
      return std::make_unique<MemoryCommunicator>(
          shape,
          MemoryCommunicator::Memory{std::move(arena.own), std::move(arena.all), moved.blocks, std::move(arena.shown)});
    } catch (const Error& failure) {
      if (failure.code() == ErrorCode::cancelled) throw GenerationEnded(failure.what());
      throw;
    }
  };
  return place;
}

// Failures that a new process would meet again.
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

// Otherwise the others would wait for it, or the run would end without having trained.
void require_generation(const recovery::Worker& worker) {
  if (worker.generation() >= 0) return;
  throw Error(ErrorCode::invalid_argument,
              "the training function returned without fit(), evaluate() or predict() of a Trainer, which all replicas "
              "have to call; what needs no replicas belongs before or behind supervise()");
}

int train_as_worker(const SuperviseOptions& options, const std::function<void(Replica&)>& train) {
  std::unique_ptr<recovery::Worker> worker;
  try {
    worker = recovery::Worker::join(Deadline::after(std::chrono::minutes(5)));
    Replica replica(place_of(*worker, options));
    train(replica);
    require_generation(*worker);
    worker->enter(recovery::Phase::finishing, 0);
    worker->faults().reach(recovery::FaultPhase::shutdown, -1);
    worker->report_finished();
    return 0;
  } catch (const StopRequested&) {
    return kExitStopped;
  } catch (const Undecided& failure) {
    if (worker) worker->report_failure(failure.what(), true);
  } catch (const Error& failure) {
    if (worker) worker->report_failure(failure.what(), is_unrecoverable(failure.code()));
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
  if (is_replica_process()) return train_as_worker(options, train);
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
