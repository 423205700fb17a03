// Training knows no watchdog: it talks to the interface Supervision (supervision.h), which this file implements by
// a recovery::Worker. Choices of the run come as JSON from the watchdog, or are settled here under `holdfast run`.
// docs/decisions/holdfast-run.md

#include "train/supervise/supervise_worker.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "collective/hosts/hosts_meeting.h"
#include "holdfast/base/cores.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/faults.h"
#include "holdfast/recovery/faulty_file_system.h"
#include "holdfast/recovery/launch.h"
#include "holdfast/recovery/memory_snapshot.h"
#include "holdfast/recovery/watchdog.h"
#include "train/context/devices.h"
#include "train/supervise/fenced_file_system.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::seconds kMemoryTimeout(30);
// The next generation of several hosts usually begins in a tenth of it. Agents wait for a lost head many times as long.
constexpr std::chrono::seconds kLongWait(1);
constexpr std::size_t kSpareSnapshotBytes = std::size_t{256} * 1024;

// Longer than the watchdog needs to find the replica that hangs. The deadline of a collective is the last resort,
// since it names only a victim.
std::chrono::milliseconds collective_timeout(std::chrono::milliseconds patience) {
  return 4 * patience;
}

class WorkerSupervision final : public Supervision {
 public:
  explicit WorkerSupervision(recovery::Worker& worker) : worker_(worker) {}

  void enter(TrainingPhase phase, std::int64_t step) override { worker_.enter(phase, step); }
  void regroup() override { worker_.regroup(); }
  void enter_background(const BackgroundWork& work) override {
    worker_.enter_background({.what = work.what, .bytes = work.bytes, .is_callback = work.is_callback});
  }
  void leave_background() override { worker_.leave_background(); }
  void reach(FaultPoint point, std::int64_t step) override { worker_.faults().reach(point, step); }
  void corrupt(FaultPoint point, std::int64_t step, const FloatsOf& floats) override {
    while (const std::optional<recovery::Corruption> due = worker_.faults().corruption(point, step)) {
      const std::string what = recovery::corrupt(*due, floats(due->target));
      worker_.report_event("corruption_injected",
                           Json{{"step", step}, {"target", recovery::to_string(due->target)}, {"what", what}}.dump());
    }
  }
  bool may_corrupt(FaultPoint point, std::int64_t step) override { return worker_.faults().may_corrupt(point, step); }
  double slowdown(std::int64_t step) override { return worker_.faults().slowdown(step); }
  bool may_change() const override { return worker_.may_change(); }
  StepRequests requests() const override {
    const recovery::Worker::Requests asked = worker_.requests();
    return {.stop = asked.stop, .regroup = asked.regroup, .savepoint = asked.savepoint > begun_savepoint_};
  }
  int begin_requested_savepoint() override { return begun_savepoint_ = worker_.requests().savepoint; }
  void report_savepoint(int number, const std::string& path, std::int64_t step) override {
    worker_.report_savepoint(number, path, step);
  }
  void report_no_savepoint(int number, const std::string& why) override { worker_.report_no_savepoint(number, why); }
  void count_samples(std::int64_t samples) override { worker_.count_samples(samples); }
  void keep_in_memory(std::int64_t step, std::size_t bytes, const Write& write, const Accepts& accepts) override {
    snapshots_for(bytes).write(worker_.generation(), step, bytes, write, accepts);
  }
  void prepare_in_memory(std::size_t bytes) override { static_cast<void>(snapshots_for(bytes)); }
  std::optional<OutlivingMemory> begin_in_memory(std::int64_t step, std::size_t bytes) override {
    recovery::MemorySnapshots& snapshots = snapshots_for(bytes);
    // The generation of this state. Another one may have begun by the time the state is written.
    const auto keep = [memory = snapshots_, step, generation = worker_.generation()](const Accepts& accepts) {
      return memory->finish(generation, step, accepts);
    };
    return OutlivingMemory{
        .bytes = snapshots.begin(bytes), .all = snapshots.memory(), .mapping = snapshots_, .keep = keep};
  }
  // Several processes may have kept states; the newest whole one counts.
  bool read_from_memory(const std::function<void(std::span<const std::byte>)>& read) override {
    const std::vector<SharedMemory> memories = worker_.take_snapshot_memories();
    std::optional<recovery::MemorySnapshots::Whole> newest;
    for (const SharedMemory& memory : memories) {
      const auto candidate = recovery::MemorySnapshots::newest(memory);
      if (candidate && (!newest || candidate->step > newest->step)) newest = candidate;
    }
    if (newest) read(newest->bytes);
    return newest.has_value();
  }
  void report_event(const std::string& event, const std::string& detail) override {
    worker_.report_event(event, detail);
  }

 private:
  // The header of a state grows with the history, so the memory has room to spare. Otherwise each snapshot would need
  // new memory.
  recovery::MemorySnapshots& snapshots_for(std::size_t bytes) {
    if (!snapshots_ || snapshots_->capacity_bytes() < bytes) {
      snapshots_ = std::make_shared<recovery::MemorySnapshots>(
          worker_.request_snapshot_memory(bytes + bytes / 8 + kSpareSnapshotBytes, Deadline::after(kMemoryTimeout)));
      // Without this the first snapshot in each slot would take three to seven times as long as others: 0.4 and 0.9 s
      // instead of 0.13 s for 494 MB, on 2 cores. Only for the bytes of images: the rest may never be needed.
      snapshots_->find_memory(bytes);
    }
    return *snapshots_;
  }

  recovery::Worker& worker_;
  std::shared_ptr<recovery::MemorySnapshots> snapshots_;
  std::atomic<int> begun_savepoint_ = 0;  // the newest request that was begun
};

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
              "CUDA devices were asked for, and the program that started this process gave it none; name them, such as "
              "`holdfast run --devices cuda:0,cuda:1 -- PROGRAM`");
}

// One process at most of those that share the run directory: no two living ones of a host have one local rank. As a run
// begins, each host that is to have a replica has a process with local rank 0.
bool is_first_in_folder(const recovery::Worker& worker) {
  if (!worker.has_own_folder()) return worker.rank() == 0;
  const char* const local_rank = std::getenv("LOCAL_RANK");
  return local_rank != nullptr && std::string_view(local_rank) == "0";
}

// The choices of a run whose watchdog knows none, as under `holdfast run`. Every replica settles the same choices,
// and records them if no other replica has.
class OwnChoices {
 public:
  OwnChoices(SuperviseOptions options, const recovery::Worker& worker) : options_(std::move(options)) {
    options_.run_directory = worker.run_directory();
    options_.replicas = worker.size();
    check_given_devices();
    require_asked_kind(options_.kind);
    check_precision(options_.precision, own_device() != "cpu");
    choices_ = settle_choices(options_, options_.replicas);
    check_numbers(choices_, options_.replicas, recovery::kMaxReplicas);
    if (is_first_in_folder(worker)) recovery::put_copies_aside(options_.run_directory, options_.savepoint_copies);
    record_choices(options_, choices_, worker.rank() == 0);
  }

  std::string config() const { return worker_config(options_, choices_, {}); }
  // Called when all replicas have recorded theirs. Two that started at the same time may both have found no record.
  void check() const { require_recorded(options_, choices_); }

 private:
  SuperviseOptions options_;
  RunChoices choices_;
};

// The first host records what the run was started with. A folder of another host has to say so, too, where it takes the
// place of that one's.
void record_on_this_host(SuperviseOptions options, const Replica::Context& context) {
  options.run_directory = context.run_directory;
  record_choices(options,
                 {.seed = context.seed,
                  .shards = context.shards,
                  .threads_per_shard = context.threads_per_shard,
                  .reduction = context.reduction,
                  .first_replicas = context.first_replicas},
                 false);
}

// A worker that was in no generation yet has the rank that it was started for, which may be any.
HostLayout layout_of(const recovery::Worker& worker) {
  if (!worker.host_ranks().empty()) return HostLayout(worker.host_ranks());
  return HostLayout({std::max(worker.size(), worker.rank() + 1)});
}

// The watchdog assigns the shards that the members of a generation have reported. Members of the next generation may
// have been started with other options.
void require_same_shards(const Replica::Context& context) {
  if (context.assigned.empty()) return;
  const int assigned = std::accumulate(context.assigned.begin(), context.assigned.end(), 0);
  if (assigned == context.shards && static_cast<int>(context.assigned.size()) == context.size) return;
  throw Error(ErrorCode::incompatible,
              fmt::format("the watchdog assigned {} shards to {} replicas, but this replica has {} shards for {} "
                          "replicas; start all replicas with the same options",
                          assigned, context.assigned.size(), context.shards, context.size));
}

}  // namespace

// Cores are passed on, so that all replicas of a host divide the same number of them. Other hosts than the first say
// their own.
std::string worker_config(const SuperviseOptions& options, const RunChoices& choices, const AssignedCalls& calls) {
  return Json{{"seed", choices.seed},
              {"shards", choices.shards},
              {"threads_per_shard", choices.threads_per_shard},
              {"reduction", name(choices.reduction)},
              {"first_replicas", choices.first_replicas},
              {"precision", name(options.precision)},
              {"cores", core_count()},
              {"memory_snapshot_every", options.memory_snapshot_every},
              {"savepoint_copies", options.savepoint_copies},
              {"accept_other_arithmetic", options.accept_other_arithmetic},
              {"calls", to_text(calls)}}
      .dump();
}

std::optional<AssignedCalls> calls_of(const recovery::Worker& worker) {
  if (worker.config().empty()) return std::nullopt;
  return assigned_calls_from(Json::parse(worker.config()).at("calls").get<std::string>());
}

namespace {

void take_choices(const Json& config, Replica::Context& context) {
  context.shards = config.at("shards").get<int>();
  context.threads_per_shard = config.at("threads_per_shard").get<int>();
  context.seed = config.at("seed").get<std::uint64_t>();
  context.precision = precision_from_name(config.at("precision").get<std::string>());
  context.reduction = reduction_from_name(config.at("reduction").get<std::string>());
  context.first_replicas = config.at("first_replicas").get<int>();
  context.savepoint_copies = config.at("savepoint_copies").get<std::vector<std::string>>();
  context.accept_other_arithmetic = config.at("accept_other_arithmetic").get<bool>();
  context.memory_snapshot_every = config.at("memory_snapshot_every").get<std::int64_t>();
}

// Files as the faults of the run let them be, and as the fence of a host allows.
std::unique_ptr<FileSystem> files_of(recovery::Worker& worker) {
  std::unique_ptr<FileSystem> files = recovery::faulty_file_system(posix_file_system(), worker.faults());
  if (!worker.has_fence()) return files;
  return fenced_file_system(std::move(files), [&worker] { return worker.may_change(); });
}

// What a generation changes. The context itself stays, since the Trainer refers to it.
void enter_generation_of(const recovery::Worker& worker, Replica::Context& context) {
  context.rank = worker.rank();
  context.size = worker.size();
  context.generation = worker.generation();
  context.assigned = worker.assigned_shards();
  require_same_shards(context);
  const HostLayout layout = layout_of(worker);
  const int host = layout.host_of(context.rank);
  context.hosts = layout.hosts();
  context.host = host;
  context.keeps_for_its_host = host > 0 && context.rank == layout.first_rank(host);
  // The replicas of this host share its cores.
  const int cores = context.cores / layout.ranks_of(host);
  context.saving_threads = std::max(1, cores);
  context.workers = context.device == "cpu" ? std::max(1, cores / context.threads_per_shard) : 1;
}

// Where all ranks are on this host, the meeting makes what MemoryMeeting makes.
HostsMeeting::Admission admit(recovery::Worker& worker, const Replica::Context& context, const CommunicatorShape& shape,
                              const std::shared_ptr<SharedMemory>& blocks) {
  try {
    // The watchdog needs to know who computes how much, to find a slow replica.
    if (!shape.is_second) {
      worker.report_work({.shards = shape.assignment.of(shape.rank).count(), .at_once = context.workers});
    }
    // As long as in a collective: between two Trainers a program may compute or load what the next one needs.
    recovery::Worker::Arena arena = worker.exchange_arenas(MemoryCommunicator::kArenaBytes,
                                                           Deadline::after(context.collective_timeout), blocks.get());
    return {.layout = layout_of(worker),
            .generation = static_cast<std::uint64_t>(worker.generation()),
            .memory = {std::move(arena.own), std::move(arena.all), blocks, std::move(arena.shown)},
            .sockets = std::move(arena.links),
            .cancel_event = {}};
  } catch (const Error& failure) {
    // `recovery` does not know the SDK's exceptions.
    if (failure.code() == ErrorCode::cancelled) throw GenerationEnded(failure.what());
    throw;
  }
}

}  // namespace

std::shared_ptr<Replica::Context> context_of(recovery::Worker& worker, const SuperviseOptions& options) {
  std::shared_ptr<const OwnChoices> own;
  if (worker.config().empty()) own = std::make_shared<OwnChoices>(options, worker);
  const Json config = Json::parse(own ? own->config() : worker.config());
  auto context = std::make_shared<Replica::Context>();
  take_choices(config, *context);
  context->run_directory = worker.run_directory();
  if (!own && worker.has_own_folder()) record_on_this_host(options, *context);
  context->has_own_folders = worker.has_own_folder();
  context->collective_timeout = collective_timeout(worker.patience());
  context->restarts = [&worker] { return restart_records(worker); };
  context->supervision = std::make_shared<WorkerSupervision>(worker);
  context->own_file_system = files_of(worker);
  context->file_system = context->own_file_system.get();
  context->cores = worker.cores().value_or(config.at("cores").get<int>());
  context->device = own_device();
  // A device computes its shards one after the other.
  context->most_workers = context->device == "cpu" ? std::max(1, context->cores / context->threads_per_shard) : 1;
  enter_generation_of(worker, *context);
  context->enter_generation = [&worker, own, &moved = *context](std::int64_t state_step,
                                                                const std::function<void()>& keep_state) {
    // On a single host the watchdog begins the next generation, or ends the run with a savepoint of a member.
    recovery::Worker::LongWait long_wait;
    if (worker.has_fence() && state_step >= 0) long_wait = {.after = kLongWait, .then = keep_state};
    worker.enter_generation(Deadline::after(moved.collective_timeout), state_step, long_wait);
    if (own) own->check();
    enter_generation_of(worker, moved);
  };
  context->meeting = std::make_shared<HostsMeeting>(
      [&worker, &moved = *context](const CommunicatorShape& shape, const std::shared_ptr<SharedMemory>& blocks) {
        return admit(worker, moved, shape, blocks);
      });
  return context;
}

}  // namespace holdfast
