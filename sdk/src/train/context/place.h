#pragma once

// What is inside a Replica: its rank, the run's fixed choices, and its connections to the watchdog, the file system and
// the other ranks. supervise() makes one for a replica process, Replica::alone() for a program that trains by itself,
// and unit tests make them for ranks that are threads.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collective/meeting.h"
#include "collective/shard_deal.h"
#include "holdfast/base/error.h"
#include "holdfast/base/fault_point.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/training_phase.h"
#include "holdfast/base/whole_file.h"
#include "holdfast/compute/precision.h"
#include "holdfast/train/reduction.h"
#include "holdfast/train/replica.h"
#include "train/context/requests.h"

namespace holdfast {

class SavingWatch;

// Memory for one state that outlives this process.
struct OutlivingMemory {
  std::span<std::byte> bytes;     // for the state
  std::span<std::byte> all;       // the block that `bytes` lies in; mostly the same for consecutive states
  std::shared_ptr<void> mapping;  // keeps `all` mapped as long as anyone holds it
  // Called when `bytes` are written: passes them to `accepts`, and keeps the state if that returns true. Any thread.
  std::function<bool(const std::function<bool(std::span<const std::byte>)>& accepts)> keep;
};

// What the thread that writes savepoints is doing.
struct BackgroundWork {
  std::string what{};        // "fsync of run/savepoint-0000000120.h5"
  std::uint64_t bytes = 0;   // that this work moves to or from the storage
  bool is_callback = false;  // it runs code of the application
};

// What training reports to the supervisor of this replica, and what the supervisor asks of training. Functions may be
// called on any thread.
class Supervision {
 public:
  virtual ~Supervision() = default;
  // Training has entered `phase` of `step`. Each call is also a sign of life.
  virtual void enter(TrainingPhase phase, std::int64_t step) = 0;
  // Training is on its way from one generation to the next, which may take a device longer than a step.
  virtual void regroup() = 0;
  // The thread that writes savepoints has begun `work`, or has made progress with it. The watchdog may end this process
  // if no call follows for too long. There is one work at a time.
  virtual void enter_background(const BackgroundWork& work) = 0;
  virtual void leave_background() = 0;
  // Training has reached `point`, where an injected fault may strike. `step` is -1 outside the steps.
  virtual void reach(FaultPoint point, std::int64_t step) = 0;
  // Lets an injected fault change numbers. Calls `floats` only if one is due, for the arrays of the fault's target.
  using FloatsOf = std::function<std::vector<std::span<float>>(FaultTarget)>;
  virtual void corrupt(FaultPoint point, std::int64_t step, const FloatsOf& floats) = 0;
  // Whether a fault may change numbers at that point. If so, they must not be used before corrupt().
  virtual bool may_corrupt(FaultPoint point, std::int64_t step) = 0;
  // The factor by which an injected fault slows the computation of `step`; 1 without a fault.
  virtual double slowdown(std::int64_t step) = 0;
  // What the watchdog asks of this replica: a stop, a regroup at the next step boundary, or a savepoint that this
  // replica has not begun. It never asks for a comparison.
  virtual Requests requests() const = 0;
  // Returns the number of the newest request for a savepoint. A report with this number answers all requests up to it.
  virtual int begin_requested_savepoint() = 0;
  virtual void report_savepoint(int number, const std::string& path, std::int64_t step) = 0;
  virtual void report_no_savepoint(int number, const std::string& why) = 0;
  // This process has trained on so many more samples.
  virtual void count_samples(std::int64_t samples) = 0;
  // Keeps a state in memory that outlives this process, if there is such memory. `write` copies the state piece by
  // piece. A copy that `accepts` refuses is dropped.
  using Write = std::function<void(std::size_t begin, std::span<std::byte> piece)>;
  using Accepts = std::function<bool(std::span<const std::byte> copied)>;
  virtual void keep_in_memory(std::int64_t step, std::size_t bytes, const Write& write, const Accepts& accepts) = 0;
  // Does what keeping states of this size needs once, and what would make the first call of keep_in_memory() slow. It
  // takes as long as keeping several states.
  virtual void prepare_in_memory(std::size_t bytes) = 0;
  // Memory for a state that the caller copies there itself, one at a time; empty if no memory outlives this process.
  virtual std::optional<OutlivingMemory> begin_in_memory(std::int64_t step, std::size_t bytes) = 0;
  // Calls `read` with the newest whole state that any process kept in this way. Returns false if no process did.
  virtual bool read_from_memory(const std::function<void(std::span<const std::byte>)>& read) = 0;
  // Writes a line to the run's journal.
  virtual void report_event(const std::string& event, const std::string& detail) = 0;
};

// For training without a watchdog.
class NoSupervision : public Supervision {
 public:
  void enter(TrainingPhase, std::int64_t) override {}
  void regroup() override {}
  void enter_background(const BackgroundWork&) override {}
  void leave_background() override {}
  void reach(FaultPoint, std::int64_t) override {}
  void corrupt(FaultPoint, std::int64_t, const FloatsOf&) override {}
  bool may_corrupt(FaultPoint, std::int64_t) override { return false; }
  double slowdown(std::int64_t) override { return 1; }
  Requests requests() const override { return {}; }
  int begin_requested_savepoint() override { return 0; }
  void report_savepoint(int, const std::string&, std::int64_t) override {}
  void report_no_savepoint(int, const std::string&) override {}
  void count_samples(std::int64_t) override {}
  void keep_in_memory(std::int64_t, std::size_t, const Write&, const Accepts&) override {}
  void prepare_in_memory(std::size_t) override {}
  std::optional<OutlivingMemory> begin_in_memory(std::int64_t, std::size_t) override { return std::nullopt; }
  bool read_from_memory(const std::function<void(std::span<const std::byte>)>&) override { return false; }
  void report_event(const std::string&, const std::string&) override {}
};

// Thrown through the training function after a request to stop, once the savepoint is durable.
struct StopRequested {};

// The replicas compute different numbers, and it cannot be found which are right. A new process would fail in the same
// way.
class Undecided : public Error {
 public:
  explicit Undecided(const std::string& what) : Error(ErrorCode::diverged, what) {}
};

struct Replica::Place {
  // Set by enter_generation(), for the generation that this process is part of.
  int rank = 0;
  int size = 1;
  int generation = 0;
  std::string device = "cpu";  // that this process computes on: "cpu", "cuda:0"
  int workers = 1;             // shards that this replica computes at once, at most
  std::vector<int> dealt{};    // shards of each rank; empty: assigned evenly
  int saving_threads = 0;      // this replica's share of the host's cores; 0: all that the process has
  int cores = 0;               // that the host's replicas share; 0: all that the process has

  int most_workers = 1;  // the largest `workers` of any generation
  int shards = 1;
  int threads_per_shard = 1;
  std::uint64_t seed = 0;
  Precision precision = Precision::f32;
  Reduction reduction = Reduction::shard_order;
  int first_replicas = 1;  // of the run's first start; Reduction::fastest makes bits depend on it
  std::string run_directory;
  std::vector<std::string> savepoint_copies;
  bool accept_other_arithmetic = false;
  bool writes_files = true;                // false: the run is only inspected, for debugging
  std::int64_t memory_snapshot_every = 0;  // steps; 0: as often as costs little time
  // The clock that measures what these snapshots cost. Any thread.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  std::chrono::milliseconds collective_timeout = std::chrono::minutes(5);
  std::function<std::vector<RestartRecord>()> restarts = [] { return std::vector<RestartRecord>(); };

  std::shared_ptr<Supervision> supervision = std::make_shared<NoSupervision>();
  FileSystem* file_system = &posix_file_system();
  std::unique_ptr<FileSystem> own_file_system;  // what file_system points to, if this Place owns it
  // The Trainer writes its savepoints through this: file_system, observed by saving_watch. Set by the first Trainer.
  std::unique_ptr<FileSystem> saving_files;
  std::shared_ptr<SavingWatch> saving_watch;
  // Blocks until this process is part of a new generation, and sets the first members above for it. `state_step` is the
  // step of the state that the process brings along, or -1.
  std::function<void(std::int64_t state_step)> enter_generation = [](std::int64_t) {};
  // Makes the communicator of each generation, with a deadline of collective_timeout.
  std::shared_ptr<Meeting> meeting;
  bool has_trainer = false;
  std::string results;  // results_text() of the Trainer's finished calls; empty before the first one

  ShardDeal deal() const { return dealt.empty() ? ShardDeal::even(shards, size) : ShardDeal(dealt); }
  // The assignment of a run without failures.
  ShardDeal first_deal() const { return ShardDeal::even(shards, first_replicas); }
};

}  // namespace holdfast
