#pragma once

// The watchdog as one replica's process sees it: which generation am I part of, how to get memory that peers can read,
// how to say that I am alive.
//
//   if (is_worker()) {
//     auto worker = Worker::join(Deadline::after(std::chrono::minutes(2)));
//     ... load data, build the model ...
//     worker->enter_generation();
//     ... worker->enter(Phase::computing, step); ...   where a wait for peers is cancelled: enter_generation() again
//     worker->report_finished();
//   }
//
// While a Worker lives, the process ends itself with exit code 70 as soon as the watchdog is gone. A process that
// leaves without report_finished() has failed, unless it was asked to stop.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/base/deadline.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/recovery/faults.h"
#include "holdfast/recovery/memory_snapshot.h"
#include "holdfast/recovery/phase.h"

namespace holdfast::recovery {

// True in a process that a watchdog started, from its first line to its end; false in programs that such a process
// starts. Any thread.
bool is_worker();

// A failure of a replica of the run, after which it was replaced.
struct Restart {
  int generation = 0;  // that it ended
  int rank = 0;        // of the replica; -1: of a process that was part of no generation yet
  std::string cause{};
  double detected_unix_seconds = 0;
  std::int64_t step = -1;  // where that replica was; -1 before its first step
};

class Worker {
 public:
  // Says hello to the watchdog, once in a process. From then on SIGPIPE and SIGXFSZ no longer end this process, unless
  // they have handlers of their own: a write that fails must not end a run. Throws Error{deadline_exceeded},
  // Error{invalid_argument} in a process that no watchdog started, or that has joined before, or Error{input_output}
  // where no thread can be started.
  static std::unique_ptr<Worker> join(Deadline deadline);
  // Takes leave in order: the watchdog does not mistake it for a death. The process should end soon after.
  ~Worker();

  // Blocks until this process is part of a new generation. The first call says that it is ready to train, and may take
  // as long as the watchdog lives: a spare waits to be needed. A later call says that it has left its generation, keeps
  // its state, and waits for the next; Error{deadline_exceeded} when there is none within `deadline`. `state_step` is
  // the step of the whole state that it brings along, -1 without one.
  void enter_generation(Deadline deadline, std::int64_t state_step = -1);

  // Before the first generation: the rank that this process was started for (one of a spare is not below size()), how
  // many replicas there are to be, and -1.
  int rank() const;
  int size() const;
  int generation() const;
  // How many shards each rank of the generation is to compute, where the watchdog has dealt them by how fast the ranks
  // are; empty: as the program deals them.
  const std::vector<int>& dealt_shards() const;
  const std::string& run_directory() const;
  const std::string& config() const;
  // How long the watchdog waits for progress, at most, before it takes a process for hung. A wait for peers that ends
  // earlier than several times that blames the victim.
  std::chrono::milliseconds patience() const;
  // All of the run so far, oldest first, those under earlier watchdogs too, as the journal in the run directory has
  // them.
  std::vector<Restart> restarts() const;

  struct Arena {
    SharedMemory own;               // writable; all zero
    std::vector<SharedMemory> all;  // by rank, read-only; the own rank's is empty
    // By rank, what each has shown, read-only; the own too. None where nobody shows any.
    std::vector<std::shared_ptr<const SharedMemory>> shown{};
  };
  // Gives each rank of the generation a block of `bytes` that its peers can read. The first four bytes are a
  // SignalWord, which the watchdog cancels when the generation ends. All ranks must call it equally often, with equal
  // sizes; one thread at a time. Throws Error{cancelled} when the generation ends, Error{incompatible} where sizes
  // differ, Error{out_of_memory}, Error{deadline_exceeded}.
  //
  // `shows` is memory of this process that its peers may read too, and that it keeps from generation to generation; all
  // show as many bytes, or none does. What was seen of it before is the same view again.
  Arena exchange_arenas(std::size_t bytes, Deadline deadline, const SharedMemory* shows = nullptr);

  // What this process computes in each step of its generation. The watchdog compares those who say so, and deals them
  // fewer shards where it is asked to: they obey dealt_shards() from their next generation on. Throws
  // Error{invalid_argument} for less than one shard, or one at once.
  struct Work {
    int shards = 1;
    int at_once = 1;  // at most
  };
  void report_work(const Work& work);

  // Memory of the watchdog for snapshots of up to `capacity_bytes`, of this process alone. Those of other processes go
  // as soon as this one holds one that is whole.
  MemorySnapshots request_snapshot_memory(std::size_t capacity_bytes, Deadline deadline);
  // What is there of earlier writers, read-only, newest writer first; for the generation's rank 0, empty for others.
  std::vector<SharedMemory> take_snapshot_memories();

  // Both tell that there is progress; cheap enough for every layer of a network. Any thread. A process that dies before
  // it has entered another phase than `starting`, `regrouping` and `waiting_for_peers` in its generation did not die of
  // a step.
  void enter(Phase phase, std::int64_t step);
  // Enters `regrouping` at the step that it was in.
  void regroup();
  void beat();
  // What a background thread is doing, such as an fsync of a savepoint. Each call tells that the thread has come
  // further. When no call comes for too long (HangLimits), the watchdog replaces this process and says what it was
  // doing. One thing at a time. Any thread.
  struct BackgroundWork {
    std::string what{};        // "fsync of run/savepoint-0000000120.h5"
    std::uint64_t bytes = 0;   // that this has to get to the storage or from there
    bool is_callback = false;  // code of the application, which may take as long as in Phase::callbacks
  };
  void enter_background(const BackgroundWork& work);
  void leave_background();
  // This process has trained on so many more samples: for those who look at the run. Any thread.
  void count_samples(std::int64_t samples);

  // What the watchdog asks of this process. Peers may learn of a request some steps earlier or later: agree on the
  // step.
  struct Requests {
    bool stop = false;     // save, then leave with exit code 0 or 75
    bool regroup = false;  // another generation is to begin at a step boundary that all replicas agree on
    // The number of the newest request for a savepoint while the run goes on, 0 before the first. The generation's rank
    // 0 answers when the savepoint is durable or has failed. An answer counts for all requests up to its number.
    int savepoint = 0;
  };
  // As they are at this moment. Never blocks. Any thread.
  Requests requests() const;
  void report_savepoint(int number, const std::string& path, std::int64_t step) noexcept;
  void report_no_savepoint(int number, const std::string& why) noexcept;

  // Any thread. `is_unrecoverable`: it would fail again after every restart, so that the run should end.
  void report_failure(const std::string& what, bool is_unrecoverable) noexcept;
  // The failure that OtherChoices stands for. The run ends with it, or starts anew (run_start.h).
  void report_other_choices(const std::string& what) noexcept;
  // The same of an exception that is the program's own; a new process may do better.
  void report_exception(const std::string& what) noexcept;
  void report_finished();
  // A line for the journal, such as "savepoint written"; `details` is a JSON text. A line that cannot be sent is lost.
  void report_event(const std::string& name, const std::string& details) noexcept;

  const Faults& faults() const;

 private:
  struct Connection;
  explicit Worker(std::unique_ptr<Connection> connection);

  std::unique_ptr<Connection> connection_;
};

}  // namespace holdfast::recovery
