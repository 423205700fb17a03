#ifndef HOLDFAST_RECOVERY_WORKER_C_H
#define HOLDFAST_RECOVERY_WORKER_C_H

// The watchdog as one process of a run sees it, for C99 and for languages that call C. worker.h is the same for C++, in
// more detail. Link with libholdfast_worker, which needs nothing else of Holdfast.
//
//   holdfast_worker* worker;
//   if (holdfast_worker_join(60, &worker) != HOLDFAST_OK) ...         the program runs under `holdfast run`
//   while (1) {
//     holdfast_worker_enter_generation(worker, step, 60);             the rank may change here
//     holdfast_worker_exchange_arenas(worker, bytes, 60, &arenas);
//     ... agree on the newest state of all, train ...                 HOLDFAST_CANCELLED: once more
//     holdfast_worker_report_finished(worker);
//     break;
//   }
//   holdfast_worker_leave(worker);
//
// Functions that can fail return a status. holdfast_last_error() then says what happened, in a sentence. Nothing is
// thrown. A worker belongs to one thread, except for functions that say "any thread". A process has one worker at most.
// While it has one, the process ends itself with exit code 70 as soon as the watchdog is gone. Times are in seconds.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOLDFAST_C_API __attribute__((visibility("default")))  // a function of the library's interface

// A number never changes its meaning.
typedef enum holdfast_status {
  HOLDFAST_OK = 0,                 // it was done
  HOLDFAST_INVALID_ARGUMENT = 1,   // a value that can never work; a NULL that is not allowed
  HOLDFAST_NOT_FOUND = 2,          // it does not exist
  HOLDFAST_INPUT_OUTPUT = 3,       // the operating system refused or failed an operation
  HOLDFAST_OUT_OF_MEMORY = 4,      // memory was not to be had
  HOLDFAST_DEADLINE_EXCEEDED = 5,  // the time has passed
  HOLDFAST_CANCELLED = 6,          // the generation has ended: enter the next one
  HOLDFAST_INCOMPATIBLE = 7,       // peers asked for something else
  HOLDFAST_UNAVAILABLE = 8,        // the watchdog is gone, and this process is about to end
  HOLDFAST_FAILED = 9,             // anything else
  HOLDFAST_UNSUPPORTED = 10        // what Holdfast does not implement, as memory that several hosts share
} holdfast_status;

// What a process is doing. The watchdog decides by it how long the process may go without progress. In
// HOLDFAST_WAITING_FOR_PEERS there is no limit, since it is a peer that hangs.
typedef enum holdfast_phase {
  HOLDFAST_STARTING = 0,           // prepares, and is in no generation yet
  HOLDFAST_COMPUTING = 1,          // a step's own work
  HOLDFAST_WAITING_FOR_PEERS = 2,  // for messages or memory of other ranks
  HOLDFAST_UPDATING = 3,           // changes the weights
  HOLDFAST_SAVING = 4,             // writes a savepoint or a snapshot
  HOLDFAST_CALLBACKS = 5,          // code of the application that may take minutes
  HOLDFAST_EVALUATING = 6,         // computes figures of validation data
  HOLDFAST_FINISHING = 7,          // has computed all, and records it
  HOLDFAST_READING_DATA = 9        // waits for the next batch
} holdfast_phase;

// This process as a worker: from holdfast_worker_join() to holdfast_worker_leave().
typedef struct holdfast_worker holdfast_worker;
// Memory of all ranks of a generation: from holdfast_worker_exchange_arenas() to holdfast_arenas_free().
typedef struct holdfast_arenas holdfast_arenas;

// The sentence about the newest failure in this thread; "" before any. Valid until the next failure in this thread.
HOLDFAST_C_API const char* holdfast_last_error(void);

// 1 in a process that a watchdog started, from its first line to its end. 0 in programs that such a process starts. Any
// thread.
HOLDFAST_C_API int holdfast_is_worker(void);

// Registers with the watchdog. From then on SIGPIPE and SIGXFSZ no longer end the process, unless they have handlers of
// their own. Nor do SIGINT, SIGTERM, SIGHUP and SIGUSR1: the watchdog gets them, too, and asks. The caller owns *worker
// and passes it to holdfast_worker_leave().
HOLDFAST_C_API holdfast_status holdfast_worker_join(double timeout_seconds, holdfast_worker** worker);
// Leaves in order and frees the worker. The process should end soon after. NULL is allowed. A process that leaves
// without holdfast_worker_report_finished() has failed, unless it was asked to stop. Free all arenas before.
HOLDFAST_C_API void holdfast_worker_leave(holdfast_worker* worker);

// Blocks until this process is part of a new generation. The first call reports that the process is ready. It ignores
// the timeout and waits as long as the watchdog lives, because a spare waits until it is needed. A later call reports
// that the process has left its generation and keeps its state. In each generation a process must ask for new arenas.
// `state_step` is the step of the whole state that the process brings along, -1 without one.
HOLDFAST_C_API holdfast_status holdfast_worker_enter_generation(holdfast_worker* worker, int64_t state_step,
                                                                double timeout_seconds);

// Before the first generation: the rank that the process was started for, the number of replicas that there are to be,
// and -1.
HOLDFAST_C_API int holdfast_worker_rank(const holdfast_worker* worker);
HOLDFAST_C_API int holdfast_worker_size(const holdfast_worker* worker);
HOLDFAST_C_API int holdfast_worker_generation(const holdfast_worker* worker);
// Valid until the worker leaves.
HOLDFAST_C_API const char* holdfast_worker_run_directory(const holdfast_worker* worker);
// The longest time that the watchdog waits for progress before it takes a process for hung. Waits for peers must last
// several times as long, otherwise the victim of a hang is blamed for it.
HOLDFAST_C_API double holdfast_worker_patience_seconds(const holdfast_worker* worker);

// Heartbeats: both show that there is progress. Cheap enough for every step. Any thread. `step` is the step that
// training is in. When a process dies in a generation in which it has entered only starting and waiting for peers, no
// step is blamed.
HOLDFAST_C_API void holdfast_worker_enter(holdfast_worker* worker, holdfast_phase phase, int64_t step);
HOLDFAST_C_API void holdfast_worker_beat(holdfast_worker* worker);

// 1 when the watchdog asks for an orderly end: save, then leave with exit code 0 or 75. Peers may learn of it some
// steps earlier or later, so all must agree on the step. Any thread.
HOLDFAST_C_API int holdfast_worker_stop_requested(const holdfast_worker* worker);
// 1 when another generation is to begin, at a step boundary that all replicas agree on. Any thread.
HOLDFAST_C_API int holdfast_worker_regroup_requested(const holdfast_worker* worker);

// The number of the newest request for a savepoint while the run goes on (`holdfast snapshot`), 0 before the first.
// Rank 0 answers with one of the two functions below, when the savepoint is durable or has failed. An answer counts for
// all requests up to its number. Any thread.
HOLDFAST_C_API int holdfast_worker_savepoint_requested(const holdfast_worker* worker);
// The savepoint of `step` is durable at `path`. Any thread.
HOLDFAST_C_API void holdfast_worker_report_savepoint(holdfast_worker* worker, int number, const char* path,
                                                     int64_t step);
// The savepoint could not be written; `why` is a sentence. Any thread.
HOLDFAST_C_API void holdfast_worker_report_no_savepoint(holdfast_worker* worker, int number, const char* why);

// The next two functions are for programs that cut each step into shards, which any rank can compute. Without them a
// process is never found slow, and never assigned fewer shards (`holdfast run --when-slow`).
//
// Returns how many shards the rank is to compute in each step of this generation, where the watchdog has assigned them
// by the ranks' speed. 0 where it has not: then the program assigns them. The counts of all ranks add up to what they
// reported. 0 for a rank that is not in the generation.
HOLDFAST_C_API int holdfast_worker_dealt_shards(const holdfast_worker* worker, int rank);
// Reports how many shards this process computes in each step of its generation, and how many of these at once at most.
// Both are at least 1. Call it again in each generation. The watchdog compares processes by the time that they spend in
// HOLDFAST_COMPUTING, and only when all of the generation have reported.
HOLDFAST_C_API holdfast_status holdfast_worker_report_work(holdfast_worker* worker, int shards, int at_once);

// The first bytes of an arena belong to its counter. The bytes after them belong to the program.
#define HOLDFAST_ARENA_HEADER_BYTES 64

// Gives each rank `bytes` of memory that it may write and its peers may read. They include HOLDFAST_ARENA_HEADER_BYTES,
// and all are zero. Blocks until all ranks of the generation have called; they must call equally often, with equal
// sizes. The caller frees *arenas.
HOLDFAST_C_API holdfast_status holdfast_worker_exchange_arenas(holdfast_worker* worker, size_t bytes,
                                                               double timeout_seconds, holdfast_arenas** arenas);
// NULL is allowed.
HOLDFAST_C_API void holdfast_arenas_free(holdfast_arenas* arenas);
// The bytes after the header. NULL for a rank that is not in the generation.
HOLDFAST_C_API void* holdfast_arenas_own(holdfast_arenas* arenas);
// The same of another rank, which only that rank writes.
HOLDFAST_C_API const void* holdfast_arenas_of(const holdfast_arenas* arenas, int rank);
// Adds one to the own counter, which begins at 0. A peer that has waited for that count sees what was written before.
HOLDFAST_C_API void holdfast_arenas_count_up(holdfast_arenas* arenas);
// Blocks until the counter of `rank` is at least `count`. The two must differ by less than 2^30, since counters wrap
// from 2^31 - 1 to 0. Returns HOLDFAST_CANCELLED at once when the generation ends, also for a count that was reached.
HOLDFAST_C_API holdfast_status holdfast_arenas_wait_for(const holdfast_arenas* arenas, int rank, uint32_t count,
                                                        double timeout_seconds);
// 1 when the generation has ended. Any thread.
HOLDFAST_C_API int holdfast_arenas_are_cancelled(const holdfast_arenas* arenas);

// Copies a state into memory of the watchdog, which outlives all processes of the run. The snapshot before stays until
// this one is whole.
HOLDFAST_C_API holdfast_status holdfast_worker_write_snapshot(holdfast_worker* worker, int64_t step, const void* bytes,
                                                              size_t size, double timeout_seconds);
// The newest whole snapshot that any process wrote before this generation. For rank 0, once in a generation. Returns
// HOLDFAST_NOT_FOUND when there is no snapshot. The bytes are valid until the next call of this function, and until the
// worker leaves.
HOLDFAST_C_API holdfast_status holdfast_worker_read_snapshot(holdfast_worker* worker, int64_t* step, const void** bytes,
                                                             size_t* size);

// Reports a failure, in a sentence. The process is replaced. With `is_unrecoverable`, because a new process would fail
// again, the run ends instead. Any thread.
HOLDFAST_C_API void holdfast_worker_report_failure(holdfast_worker* worker, const char* what, int is_unrecoverable);
// Training is complete, and the process may end with exit code 0. The run finishes when all ranks have reported.
HOLDFAST_C_API holdfast_status holdfast_worker_report_finished(holdfast_worker* worker);
// Adds a line to the run's journal. `details` is a JSON text; other text is quoted. Any thread.
HOLDFAST_C_API void holdfast_worker_report_event(holdfast_worker* worker, const char* name, const char* details);

#ifdef __cplusplus
}
#endif

#endif
