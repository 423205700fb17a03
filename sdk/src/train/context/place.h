#pragma once

// What a Replica stands for: its rank, the run's fixed choices, and its ties to the world. supervise() makes one for a
// replica process, Replica::alone() for a program on its own, and unit tests for ranks that are threads.

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

// Where a state of so many bytes is kept beyond the end of this process.
struct OutlivingMemory {
  std::span<std::byte> bytes;     // for the state
  std::span<std::byte> all;       // what they are part of: the same for states one after the other, mostly
  std::shared_ptr<void> mapping;  // of all that; it is there as long as somebody holds this
  // Once the bytes are written: reads them all, and keeps the state unless `accepts` refuses them. Any thread.
  std::function<bool(const std::function<bool(std::span<const std::byte>)>& accepts)> keep;
};

// What the thread that writes savepoints is doing.
struct BackgroundWork {
  std::string what{};        // "fsync of run/savepoint-0000000120.h5"
  std::uint64_t bytes = 0;   // that this has to get to the storage or from there
  bool is_callback = false;  // code of the application
};

// What training tells, and asks of, whoever supervises this replica. Any thread.
class Supervision {
 public:
  virtual ~Supervision() = default;
  // Doubles as a sign of life.
  virtual void enter(TrainingPhase phase, std::int64_t step) = 0;
  // The same for the way out of a generation and into the next, which takes a device longer than a step may.
  virtual void regroup() = 0;
  // Each call tells that the thread that writes savepoints has come further. The watchdog may end this process when no
  // call comes for too long. One work at a time.
  virtual void enter_background(const BackgroundWork& work) = 0;
  virtual void leave_background() = 0;
  // Where an injected fault strikes; `step` is -1 where there is none.
  virtual void reach(FaultPoint point, std::int64_t step) = 0;
  // Where one may change numbers: `floats` is called only when that is due, and gives those of the target.
  using FloatsOf = std::function<std::vector<std::span<float>>(FaultTarget)>;
  virtual void corrupt(FaultPoint point, std::int64_t step, const FloatsOf& floats) = 0;
  // Whether it may be due there, so that numbers must not be used before.
  virtual bool may_corrupt(FaultPoint point, std::int64_t step) = 0;
  // How many times as long as it takes this replica shall take to compute the step.
  virtual double slowdown(std::int64_t step) = 0;
  // What the watchdog asks of this replica: a stop, a regroup at the next step boundary, a savepoint that this replica
  // has not begun. It never asks for a comparison.
  virtual Requests requests() const = 0;
  // The number of the newest such request. What is reported of it answers all up to its number.
  virtual int begin_requested_savepoint() = 0;
  virtual void report_savepoint(int number, const std::string& path, std::int64_t step) = 0;
  virtual void report_no_savepoint(int number, const std::string& why) = 0;
  // This process has trained on so many more.
  virtual void count_samples(std::int64_t samples) = 0;
  // Keeps a state of so many bytes, which `write` copies piece by piece, in memory that outlives this process, unless
  // `accepts` refuses the copy.
  using Write = std::function<void(std::size_t begin, std::span<std::byte> piece)>;
  using Accepts = std::function<bool(std::span<const std::byte> copied)>;
  virtual void keep_in_memory(std::int64_t step, std::size_t bytes, const Write& write, const Accepts& accepts) = 0;
  // What keeping states of so many bytes needs once, and would else do the first time. It takes as long as several.
  virtual void prepare_in_memory(std::size_t bytes) = 0;
  // The same for a state that somebody else copies there meanwhile: one at a time.
  virtual std::optional<OutlivingMemory> begin_in_memory(std::int64_t step, std::size_t bytes) = 0;
  // Calls `read` with the newest state that any process kept so and that is whole; false where there is none.
  virtual bool read_from_memory(const std::function<void(std::span<const std::byte>)>& read) = 0;
  // A line for the run's journal.
  virtual void report_event(const std::string& event, const std::string& detail) = 0;
};

// Nobody watches.
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

// Thrown through the training function when the run was asked to stop and its savepoint is durable.
struct StopRequested {};

// Replicas compute different numbers, and nothing tells who is right: a new process would meet it again.
class Undecided : public Error {
 public:
  explicit Undecided(const std::string& what) : Error(ErrorCode::diverged, what) {}
};

struct Replica::Place {
  // Of the generation that this process is part of.
  int rank = 0;
  int size = 1;
  int generation = 0;
  std::string device = "cpu";  // that it computes on: "cpu", "cuda:0"
  int workers = 1;             // shards that this replica computes at once, at most
  std::vector<int> dealt{};    // shards of each rank; empty: evenly dealt
  int saving_threads = 0;      // this replica's share of the host's cores; 0: all that the process has
  int cores = 0;               // that the host's replicas share; 0: all that the process has

  int most_workers = 1;  // that it may have in any generation
  int shards = 1;
  int threads_per_shard = 1;
  std::uint64_t seed = 0;
  Precision precision = Precision::f32;
  Reduction reduction = Reduction::shard_order;
  int first_replicas = 1;  // of the run's first start: under Reduction::fastest the bits are theirs
  std::string run_directory;
  std::vector<std::string> savepoint_copies;
  bool accept_other_arithmetic = false;
  bool writes_files = true;                // false: the run is only looked at, for debugging
  std::int64_t memory_snapshot_every = 0;  // steps; 0: as often as costs next to nothing
  // What tells how much these cost. Any thread.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  std::chrono::milliseconds collective_timeout = std::chrono::minutes(5);
  std::function<std::vector<RestartRecord>()> restarts = [] { return std::vector<RestartRecord>(); };

  std::shared_ptr<Supervision> supervision = std::make_shared<NoSupervision>();
  FileSystem* file_system = &posix_file_system();
  std::unique_ptr<FileSystem> own_file_system;  // what file_system points to, where it is no other's
  // What the Trainer's savepoints are written through: file_system, seen by saving_watch. Set by the first Trainer.
  std::unique_ptr<FileSystem> saving_files;
  std::shared_ptr<SavingWatch> saving_watch;
  // Blocks until this process is part of a new generation, of which it sets what is above. `state_step` is the step of
  // the state that it brings along, -1 without one.
  std::function<void(std::int64_t state_step)> enter_generation = [](std::int64_t) {};
  // Makes the communicator of each generation, with a deadline of collective_timeout.
  std::shared_ptr<Meeting> meeting;
  bool has_trainer = false;
  std::string results;  // results_text() of what the Trainer's calls have computed, once one has finished

  ShardDeal deal() const { return dealt.empty() ? ShardDeal::even(shards, size) : ShardDeal(dealt); }
  // That of a run without failures.
  ShardDeal first_deal() const { return ShardDeal::even(shards, first_replicas); }
};

}  // namespace holdfast
