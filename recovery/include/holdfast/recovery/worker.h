#pragma once

// The watchdog as one replica's process sees it. A worker learns which generation it is part of, gets memory that its
// peers can read, and shows that it makes progress.
//
//   if (is_worker()) {
//     auto worker = Worker::join(Deadline::after(std::chrono::minutes(2)));
//     ... load data, build the model ...
//     worker->enter_generation(Deadline::after(std::chrono::minutes(2)));
//     ... worker->enter(Phase::computing, step); ...   when a wait for peers is cancelled: enter_generation() again
//     worker->report_finished();
//   }
//
// While a Worker lives, the process ends itself with exit code 70 as soon as the watchdog is gone. A process that
// leaves without report_finished() has failed, unless it was asked to stop.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/base/deadline.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/recovery/faults.h"
#include "holdfast/recovery/memory_snapshot.h"
#include "holdfast/recovery/phase.h"
#include "holdfast/recovery/replica_work.h"
#include "holdfast/recovery/restart.h"

namespace holdfast::recovery {

// True in a process that a watchdog started, from its first line to its end. False in programs that such a process
// starts. Any thread.
bool is_worker();

// For the thread that trains, except for functions that say "any thread".
class Worker {
 public:
  // Registers with the watchdog, once in a process. From then on SIGPIPE and SIGXFSZ no longer end this process, unless
  // they have handlers of their own: a failed write must not end a run. Nor do SIGINT, SIGTERM, SIGHUP and SIGUSR1,
  // which may come to all processes of a run: the watchdog gets them, too, and asks (Requests::stop). Throws
  // Error{deadline_exceeded}, Error{invalid_argument} in a process that no watchdog started or that has joined before,
  // and Error{input_output} when no thread can be started.
  static std::unique_ptr<Worker> join(Deadline deadline);
  // Leaves in order, so that the watchdog does not take it for a death. The process should end soon after.
  ~Worker();

  // What a process does when no generation begins for a while, as when the head of several hosts is lost: it keeps its
  // state where it outlives the process.
  struct LongWait {
    std::chrono::milliseconds after;  // from the call on
    std::function<void()> then;       // called once at most, by the calling thread; empty: nothing
  };
  // Blocks until this process is part of a new generation. The first call reports that the process is ready to train.
  // It ignores `deadline` and waits as long as the watchdog lives, because a spare waits until it is needed. A later
  // call reports that the process has left its generation, keeps its state, and waits for the next one. It throws
  // Error{deadline_exceeded} when no generation begins by then. `state_step` is the step of the whole state that the
  // process brings along, -1 without one. A generation that begins during `long_wait.then` waits for it.
  void enter_generation(Deadline deadline, std::int64_t state_step = -1, const LongWait& long_wait = {});

  // The rank in the generation. Before the first one it is the rank that this process was started for; that of a spare
  // is at least size().
  int rank() const;
  int size() const;        // the replicas of the generation; before the first one, how many there are to be
  int generation() const;  // -1 before the first one
  // How many shards each rank of the generation is to compute, where the watchdog has assigned them by the ranks'
  // speed. Empty: as the program assigns them.
  const std::vector<int>& assigned_shards() const;
  // How many ranks of the generation each host has; their ranks follow one another. Empty: all are on this host.
  const std::vector<int>& host_ranks() const;
  const std::string& run_directory() const;  // as the watchdog got it
  // Whether each host of the run has a run directory of its own, so that files in it are on this host alone.
  bool has_own_folder() const;
  // The cores of this host that a process may use, where the process that wrote config() is on another host.
  std::optional<int> cores() const;
  // WatchdogOptions::worker_config.
  const std::string& config() const;
  // The longest time that the watchdog waits for progress before it takes a process for hung. Waits for peers must last
  // several times as long, otherwise the victim of a hang is blamed for it.
  std::chrono::milliseconds patience() const;
  // Whether this process runs on one of several hosts, so that may_change() can be false.
  bool has_fence() const;
  // Whether this process may change anything that other hosts see; always on a single host. On one of several it may
  // not once the head has not been reached for some seconds, because the others may go on without this host. Ask before
  // each update of the state, and before each rename or deletion of a file. A system call at most. Any thread.
  bool may_change() const;
  // All failures of the run so far, oldest first, also under earlier watchdogs. Reads the journal in the run directory.
  std::vector<Restart> restarts() const;

  // What the ranks of a generation exchange.
  struct Arena {
    SharedMemory own;               // writable, all zero
    std::vector<SharedMemory> all;  // by rank, read-only; that of the own rank is empty
    // By rank, including the own: what each has shown, read-only. Empty when no rank shows anything.
    std::vector<std::shared_ptr<const SharedMemory>> shown{};
    // In a generation over several hosts, for the first ranks of each host, as many as every host has: connections with
    // the rank at the same place of each host, by host; that of the own host is not open. `all` and `shown` are of the
    // ranks of this host alone then.
    std::vector<FileDescriptor> links{};
  };
  // Gives each rank of the generation a block of `bytes` that its peers can read. Its first four bytes are a
  // SignalWord, which the watchdog cancels when the generation ends. Blocks until all ranks have called. All must call
  // equally often, with equal sizes, and from one thread at a time. Throws Error{cancelled} when the generation ends,
  // Error{incompatible} when sizes differ, Error{out_of_memory}, Error{deadline_exceeded}.
  //
  // `shows` is memory of this process that its peers may read too, and that it keeps from generation to generation. All
  // ranks show equally many bytes, or none does. Memory that was seen in an earlier exchange keeps its mapping.
  Arena exchange_arenas(std::size_t bytes, Deadline deadline, const SharedMemory* shows = nullptr);

  // Reports what this process computes in each step, once in each generation. The watchdog compares processes that
  // report it. If it is asked to, it assigns fewer shards to slow ones, which obey assigned_shards() from their next
  // generation on. Throws Error{invalid_argument} when a number is less than one.
  void report_work(const ReplicaWork& work);

  // Returns memory of the watchdog for snapshots of up to `capacity_bytes`, for this process alone. Memory of other
  // processes is freed as soon as this one holds a whole snapshot.
  MemorySnapshots request_snapshot_memory(std::size_t capacity_bytes, Deadline deadline);
  // The memory of earlier writers, read-only, newest writer first. For rank 0 of the generation; empty for other ranks.
  std::vector<SharedMemory> take_snapshot_memories();

  // enter() and beat() are heartbeats: they show that there is progress. Cheap enough for every layer of a network. Any
  // thread. When a process dies in a generation in which it has entered only `starting`, `regrouping` and
  // `waiting_for_peers`, no step is blamed.
  void enter(Phase phase, std::int64_t step);
  // Enters `regrouping` at the step that the process was in.
  void regroup();
  // Shows progress within the phase that was entered.
  void beat();
  // What a background thread is doing, such as an fsync of a savepoint. Each call shows that the thread has made
  // progress. When no call comes for too long (HangLimits), the watchdog replaces this process, and its sentence says
  // what the thread was doing. One piece of work at a time. Any thread.
  struct BackgroundWork {
    std::string what{};        // "fsync of run/savepoint-0000000120.h5"
    std::uint64_t bytes = 0;   // that it moves to the storage or from it
    bool is_callback = false;  // code of the application, which may take as long as in Phase::callbacks
  };
  // Begins such work, or shows that it made progress.
  void enter_background(const BackgroundWork& work);
  // The work has ended.
  void leave_background();
  // Counts samples that this process has trained on, for `holdfast status`. Any thread.
  void count_samples(std::int64_t samples);

  // What the watchdog asks of this process. Peers may learn of a request some steps earlier or later, so all must agree
  // on the step.
  struct Requests {
    bool stop = false;     // save, then leave with exit code 0 or 75
    bool regroup = false;  // another generation is to begin at a step boundary that all replicas agree on
    // The number of the newest request for a savepoint while the run goes on, 0 before the first. Rank 0 of the
    // generation answers when the savepoint is durable or has failed. An answer counts for all requests up to its
    // number.
    int savepoint = 0;
  };
  // The requests of this moment. Never blocks. Any thread.
  Requests requests() const;
  // Answers all requests up to `number`: the savepoint of `step` is durable at `path`. Any thread.
  void report_savepoint(int number, const std::string& path, std::int64_t step) noexcept;
  // Answers all requests up to `number`: the savepoint could not be written, and `why`. Any thread.
  void report_no_savepoint(int number, const std::string& why) noexcept;

  // Any thread. `is_unrecoverable`: a new process would fail in the same way, so the run should end.
  void report_failure(const std::string& what, bool is_unrecoverable) noexcept;
  // Reports the failure that OtherChoices stands for. The run ends with it, or starts anew (run_start.h).
  void report_other_choices(const std::string& what) noexcept;
  // Reports an exception of the program's own. A new process may succeed.
  void report_exception(const std::string& what) noexcept;
  // Reports that training is complete. The run finishes when all ranks have reported it.
  void report_finished();
  // Adds a line to the journal, such as "savepoint written". `details` is a JSON text; other text is quoted. A line
  // that cannot be sent is lost, with a warning in the log.
  void report_event(const std::string& name, const std::string& details) noexcept;

  // The injected faults of the run (faults.h). Lives as long as the worker.
  const Faults& faults() const;

 private:
  struct Connection;
  explicit Worker(std::unique_ptr<Connection> connection);

  std::unique_ptr<Connection> connection_;
};

}  // namespace holdfast::recovery
