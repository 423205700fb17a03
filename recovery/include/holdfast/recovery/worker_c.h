#ifndef HOLDFAST_RECOVERY_WORKER_C_H
#define HOLDFAST_RECOVERY_WORKER_C_H

// The watchdog as one process of a run sees it, for C and whatever calls C; worker.h is the same for C++, with more to
// read. C99. Link with libholdfast_worker, which needs nothing else of Holdfast.
//
//   holdfast_worker* worker;
//   if (holdfast_worker_join(60, &worker) != HOLDFAST_OK) ...         the program runs under `holdfast run`
//   while (1) {
//     holdfast_worker_enter_generation(worker, step, 60);             here the rank may change
//     holdfast_worker_exchange_arenas(worker, bytes, 60, &arenas);
//     ... agree on the newest state of all, train ...                 HOLDFAST_CANCELLED: round again
//     holdfast_worker_report_finished(worker);
//     break;
//   }
//   holdfast_worker_leave(worker);
//
// Functions that can fail return HOLDFAST_OK or a status, and holdfast_last_error() then says what happened, in a
// sentence. Nothing is thrown. A worker belongs to one thread, but for the functions that say otherwise; a process has
// one worker at most. While it has one, the process ends itself with exit code 70 as soon as the watchdog is gone.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOLDFAST_C_API __attribute__((visibility("default")))

// Numbers that have a meaning never get another.
typedef enum holdfast_status {
  HOLDFAST_OK = 0,
  HOLDFAST_INVALID_ARGUMENT = 1,  // a value that can never work; a NULL where none may be
  HOLDFAST_NOT_FOUND = 2,         // there is none
  HOLDFAST_INPUT_OUTPUT = 3,      // the operating system refused or failed an operation
  HOLDFAST_OUT_OF_MEMORY = 4,
  HOLDFAST_DEADLINE_EXCEEDED = 5,  // the time given was not enough
  HOLDFAST_CANCELLED = 6,          // the generation has ended: enter the next one
  HOLDFAST_INCOMPATIBLE = 7,       // peers asked for something else
  HOLDFAST_UNAVAILABLE = 8,        // the watchdog is gone, and this process about to end
  HOLDFAST_FAILED = 9              // anything else
} holdfast_status;

// What a process is doing. It decides how long it may go without progress: in HOLDFAST_WAITING_FOR_PEERS without end,
// since it is not this one that hangs.
typedef enum holdfast_phase {
  HOLDFAST_STARTING = 0,
  HOLDFAST_COMPUTING = 1,
  HOLDFAST_WAITING_FOR_PEERS = 2,
  HOLDFAST_UPDATING = 3,
  HOLDFAST_SAVING = 4,
  HOLDFAST_CALLBACKS = 5,  // code of the application that may take minutes
  HOLDFAST_EVALUATING = 6,
  HOLDFAST_FINISHING = 7,
  HOLDFAST_READING_DATA = 9
} holdfast_phase;

typedef struct holdfast_worker holdfast_worker;
typedef struct holdfast_arenas holdfast_arenas;

// About the newest failure in this thread; "" before any. Valid until the thread's next call that fails.
HOLDFAST_C_API const char* holdfast_last_error(void);

// 1 in a process that a watchdog started, from its first line to its end; 0 in programs that such a process starts.
HOLDFAST_C_API int holdfast_is_worker(void);

// Says hello to the watchdog. From then on SIGPIPE and SIGXFSZ no longer end it, unless they have handlers of their
// own.
HOLDFAST_C_API holdfast_status holdfast_worker_join(double timeout_seconds, holdfast_worker** worker);
// Takes leave in order, and frees the worker; the process should end soon after. NULL is allowed. A process that leaves
// without holdfast_worker_report_finished() has failed, unless it was asked to stop. Arenas must be freed before.
HOLDFAST_C_API void holdfast_worker_leave(holdfast_worker* worker);

// Blocks until this process is part of a new generation. The first call says that it is ready, and blocks as long as
// the watchdog lives: a spare waits to be needed. A later one says that it has left its generation and keeps its state;
// for each generation that a process enters it must ask for new arenas. `state_step` is the step of the whole state
// that it brings along, -1 without one.
HOLDFAST_C_API holdfast_status holdfast_worker_enter_generation(holdfast_worker* worker, int64_t state_step,
                                                                double timeout_seconds);

// Before the first generation: the rank that the process was started for, how many there are to be, and -1.
HOLDFAST_C_API int holdfast_worker_rank(const holdfast_worker* worker);
HOLDFAST_C_API int holdfast_worker_size(const holdfast_worker* worker);
HOLDFAST_C_API int holdfast_worker_generation(const holdfast_worker* worker);
// Valid until the worker leaves.
HOLDFAST_C_API const char* holdfast_worker_run_directory(const holdfast_worker* worker);
// How long the watchdog waits for progress, at most, before it takes a process for hung. Waits for peers should last
// several times as long: a shorter one blames the victim.
HOLDFAST_C_API double holdfast_worker_patience_seconds(const holdfast_worker* worker);

// Both tell that there is progress; cheap enough for every step. Any thread. `step` is where training is. A
// process that dies before it has entered another phase than starting and waiting for peers in its generation did not
// die of a step.
HOLDFAST_C_API void holdfast_worker_enter(holdfast_worker* worker, holdfast_phase phase, int64_t step);
HOLDFAST_C_API void holdfast_worker_beat(holdfast_worker* worker);

// 1 when the watchdog wants an orderly end: save, then leave with exit code 0 or 75. Peers may learn of it some steps
// earlier or later: agree on the step. Any thread.
HOLDFAST_C_API int holdfast_worker_stop_requested(const holdfast_worker* worker);
// 1 when another generation is to begin at a step boundary that all agree on. Any thread.
HOLDFAST_C_API int holdfast_worker_regroup_requested(const holdfast_worker* worker);

// Somebody wants a savepoint while the run goes on (`holdfast snapshot`): the number of the newest such request, 0
// before the first. For rank 0, which answers when the savepoint is durable, or never will be; an answer counts for all
// requests up to its number. Any thread.
HOLDFAST_C_API int holdfast_worker_savepoint_requested(const holdfast_worker* worker);
HOLDFAST_C_API void holdfast_worker_report_savepoint(holdfast_worker* worker, int number, const char* path,
                                                     int64_t step);
HOLDFAST_C_API void holdfast_worker_report_no_savepoint(holdfast_worker* worker, int number, const char* why);

// For programs that cut each step into shards, which any rank can compute. Without these two a process is never noticed
// as slow, nor dealt fewer shards (`holdfast run --when-slow`).
//
// How many shards the rank is to compute in each step of this generation, where the watchdog has dealt them by how fast
// the ranks are, and 0 where it has not: then they are shared out as the program likes. The counts of all ranks add up
// to what they reported. 0 for a rank that is not in the generation.
HOLDFAST_C_API int holdfast_worker_dealt_shards(const holdfast_worker* worker, int rank);
// How many shards this process computes in each step of its generation, and how many of these at once at most; both at
// least 1. To be said anew in each generation. The watchdog compares those who say so by the time that they spend in
// HOLDFAST_COMPUTING, and compares nobody while one of the generation has not said so.
HOLDFAST_C_API holdfast_status holdfast_worker_report_work(holdfast_worker* worker, int shards, int at_once);

// An arena's first bytes belong to its counter; a program's own begin behind them.
#define HOLDFAST_ARENA_HEADER_BYTES 64

// Gives each rank `bytes`, HOLDFAST_ARENA_HEADER_BYTES among them, all zero, that it may write and its peers may read.
// All ranks of a generation must ask equally often, for equally many.
HOLDFAST_C_API holdfast_status holdfast_worker_exchange_arenas(holdfast_worker* worker, size_t bytes,
                                                               double timeout_seconds, holdfast_arenas** arenas);
// NULL is allowed.
HOLDFAST_C_API void holdfast_arenas_free(holdfast_arenas* arenas);
// Behind the header. NULL for a rank that is not in the generation.
HOLDFAST_C_API void* holdfast_arenas_own(holdfast_arenas* arenas);
HOLDFAST_C_API const void* holdfast_arenas_of(const holdfast_arenas* arenas, int rank);
// Counts the own counter up by one, from 0. A peer that has waited for that count sees what was written before.
HOLDFAST_C_API void holdfast_arenas_count_up(holdfast_arenas* arenas);
// Blocks until the counter of `rank` is at least `count`, which is to be within 2^30 of it (counters go round from 2^31
// - 1 to 0). HOLDFAST_CANCELLED at once when the generation ends, also for a count that was reached.
HOLDFAST_C_API holdfast_status holdfast_arenas_wait_for(const holdfast_arenas* arenas, int rank, uint32_t count,
                                                        double timeout_seconds);
// 1 when the generation has ended. Any thread.
HOLDFAST_C_API int holdfast_arenas_are_cancelled(const holdfast_arenas* arenas);

// Copies state into memory of the watchdog, which outlives all processes of the run. The one before stays until this
// one is whole.
HOLDFAST_C_API holdfast_status holdfast_worker_write_snapshot(holdfast_worker* worker, int64_t step, const void* bytes,
                                                              size_t size, double timeout_seconds);
// The newest whole one, of whichever process wrote it before this generation; for rank 0, once in a generation.
// HOLDFAST_NOT_FOUND where there is none. The bytes are valid until the next call of this function, and until the
// worker leaves.
HOLDFAST_C_API holdfast_status holdfast_worker_read_snapshot(holdfast_worker* worker, int64_t* step, const void** bytes,
                                                             size_t* size);

// The process is replaced, or, where a new one would fail again (`is_unrecoverable`), the run ends. Any thread.
HOLDFAST_C_API void holdfast_worker_report_failure(holdfast_worker* worker, const char* what, int is_unrecoverable);
HOLDFAST_C_API holdfast_status holdfast_worker_report_finished(holdfast_worker* worker);
// A line for the run's journal; `details` is a JSON text, or is quoted. Any thread.
HOLDFAST_C_API void holdfast_worker_report_event(holdfast_worker* worker, const char* name, const char* details);

#ifdef __cplusplus
}
#endif

#endif
