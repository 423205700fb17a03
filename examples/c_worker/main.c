// Several processes, written in C, fit a line to points. The death of any process changes no bit of the result:
//
//   holdfast run --replicas 3 -- c_worker [STEPS]
//
// The points are cut into a fixed number of shards. The processes divide the shards evenly, or the watchdog deals them
// (`--when-slow deal`). Each process writes the sums of its shards where its peers can read them, and all add the sums
// in the same order. A process that begins takes the newest state: that of a peer, else that of the watchdog's memory,
// else that of the file of an earlier run.

#include <holdfast/recovery/worker_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHARDS = 12, POINTS_OF_A_SHARD = 64, STEPS_BETWEEN_SNAPSHOTS = 100, STEPS_BETWEEN_EVENTS = 1000 };
enum { EXIT_STOPPED = 75 };

static const double kLearningRate = 0.01;

// Everything that a later step depends on.
typedef struct State {
  int64_t step;  // -1: there is no state yet
  double slope, intercept;
} State;

typedef struct Sum {
  double slope, intercept;
} Sum;

// What a process shows the others in a step. Two of these alternate, so that no process overwrites what a slower one
// still reads: a process can be late by one step, but not by two.
typedef struct Step {
  Sum gradients[SHARDS];  // only those of the process's own shards are set
  int wants_stop, wants_regroup;
} Step;

typedef struct Arena {
  State state;  // the state of the process when a generation begins
  Step steps[2];
} Arena;

typedef struct Process {
  holdfast_worker* worker;
  holdfast_arenas* arenas;
  int rank, size;
  int rank_of[SHARDS];  // the rank that computes each shard
  uint32_t count;       // the number of exchanges in this generation
  double patience;
  int answered;  // the number of the newest answered request for a savepoint
  State state;
} Process;

static holdfast_status gather(Process* process, holdfast_phase next) {
  holdfast_arenas_count_up(process->arenas);
  ++process->count;
  holdfast_worker_enter(process->worker, HOLDFAST_WAITING_FOR_PEERS, process->state.step);
  for (int rank = 0; rank < process->size; ++rank) {
    const holdfast_status status =
        holdfast_arenas_wait_for(process->arenas, rank, process->count, 4 * process->patience);
    if (status != HOLDFAST_OK) return status;
  }
  holdfast_worker_enter(process->worker, next, process->state.step);
  return HOLDFAST_OK;
}

static const Arena* arena_of(const Process* process, int rank) {
  return holdfast_arenas_of(process->arenas, rank);
}

// --- the state between runs

static void path_in_run_directory(const Process* process, const char* name, char* path, size_t size) {
  snprintf(path, size, "%s/%s", holdfast_worker_run_directory(process->worker), name);
}

static int read_file(const Process* process, State* state) {
  char path[4096];
  path_in_run_directory(process, "line.state", path, sizeof path);
  FILE* file = fopen(path, "rb");
  if (file == NULL) return 0;
  const size_t read = fread(state, sizeof *state, 1, file);
  fclose(file);
  return read == 1;
}

// An atomic write: a reader finds the old file or the new one, never a part.
static int write_file(const Process* process) {
  char path[4096], temporary[4096];
  path_in_run_directory(process, "line.state", path, sizeof path);
  path_in_run_directory(process, "line.state.new", temporary, sizeof temporary);
  FILE* file = fopen(temporary, "wb");
  if (file == NULL) return 0;
  int is_written = fwrite(&process->state, sizeof process->state, 1, file) == 1;
  is_written = fflush(file) == 0 && fsync(fileno(file)) == 0 && is_written;
  is_written = fclose(file) == 0 && is_written;
  return is_written && rename(temporary, path) == 0;
}

// Finds a state for a process that has none, when no peer may have one either.
static void find_state(Process* process) {
  const void* bytes;
  size_t size;
  int64_t step;
  const State first = {0, 0, 0};
  process->state = first;
  if (holdfast_worker_read_snapshot(process->worker, &step, &bytes, &size) == HOLDFAST_OK && size == sizeof(State)) {
    memcpy(&process->state, bytes, sizeof(State));
  } else {
    read_file(process, &process->state);
  }
}

// --- training

// The same bits in every process.
static Sum gradient_of(int shard, const State* state) {
  Sum sum = {0, 0};
  for (int i = 0; i < POINTS_OF_A_SHARD; ++i) {
    const double x = (double)(shard + SHARDS * i) / (SHARDS * POINTS_OF_A_SHARD);
    const double noise = (double)((shard * 37 + i * 101) % 19 - 9) / 100;
    const double error = state->slope * x + state->intercept - (3 * x - 1 + noise);
    sum.slope += error * x;
    sum.intercept += error;
  }
  return sum;
}

static void update(Process* process, int turn) {
  Sum sum = {0, 0};
  for (int shard = 0; shard < SHARDS; ++shard) {
    const Sum* part = &arena_of(process, process->rank_of[shard])->steps[turn].gradients[shard];
    sum.slope += part->slope;
    sum.intercept += part->intercept;
  }
  process->state.slope -= kLearningRate * sum.slope / SHARDS;
  process->state.intercept -= kLearningRate * sum.intercept / SHARDS;
  ++process->state.step;
}

// Adds a line to the run's journal.
static void tell(Process* process, const char* event) {
  char details[64];
  snprintf(details, sizeof details, "{\"step\": %lld}", (long long)process->state.step);
  holdfast_worker_report_event(process->worker, event, details);
}

// Copies the state into the watchdog's memory, so that a failure of all processes at once costs only a few steps.
static void keep(Process* process) {
  if (process->rank != 0 || process->state.step % STEPS_BETWEEN_SNAPSHOTS != 0) return;
  holdfast_worker_write_snapshot(process->worker, process->state.step, &process->state, sizeof process->state,
                                 process->patience);
  if (process->state.step % STEPS_BETWEEN_EVENTS == 0) tell(process, "line_fitted");
}

// Answers `holdfast snapshot`. The processes need not agree on a step, since all have the same state.
static void save_if_asked(Process* process) {
  const int number = holdfast_worker_savepoint_requested(process->worker);
  if (process->rank != 0 || number <= process->answered) return;
  process->answered = number;
  char path[4096];
  path_in_run_directory(process, "line.state", path, sizeof path);
  if (write_file(process)) {
    holdfast_worker_report_savepoint(process->worker, number, path, process->state.step);
  } else {
    holdfast_worker_report_no_savepoint(process->worker, number, "the state cannot be written to the run directory");
  }
}

// The requests of all processes in a step.
typedef struct Votes {
  int stop, regroup;
} Votes;

static Votes count_votes(const Process* process, int turn) {
  Votes votes = {0, 0};
  for (int rank = 0; rank < process->size; ++rank) {
    votes.stop |= arena_of(process, rank)->steps[turn].wants_stop;
    votes.regroup |= arena_of(process, rank)->steps[turn].wants_regroup;
  }
  return votes;
}

static holdfast_status train_a_step(Process* process, Votes* votes) {
  const int turn = (int)(process->count % 2);
  Step* own = &((Arena*)holdfast_arenas_own(process->arenas))->steps[turn];
  for (int shard = 0; shard < SHARDS; ++shard) {
    if (process->rank_of[shard] == process->rank) own->gradients[shard] = gradient_of(shard, &process->state);
  }
  own->wants_stop = holdfast_worker_stop_requested(process->worker);
  own->wants_regroup = holdfast_worker_regroup_requested(process->worker);
  const holdfast_status status = gather(process, HOLDFAST_COMPUTING);
  if (status != HOLDFAST_OK) return status;
  update(process, turn);
  keep(process);
  save_if_asked(process);
  *votes = count_votes(process, turn);
  return HOLDFAST_OK;
}

// All processes continue from the newest state among them.
static holdfast_status agree_on_state(Process* process) {
  if (process->state.step < 0 && process->rank == 0) find_state(process);
  ((Arena*)holdfast_arenas_own(process->arenas))->state = process->state;
  const holdfast_status status = gather(process, HOLDFAST_COMPUTING);
  if (status != HOLDFAST_OK) return status;
  State newest = arena_of(process, 0)->state;
  for (int rank = 1; rank < process->size; ++rank) {
    if (arena_of(process, rank)->state.step > newest.step) newest = arena_of(process, rank)->state;
  }
  process->state = newest;
  if (process->rank == 0) tell(process, "line_taken_up");
  return HOLDFAST_OK;
}

// Assigns the shards as the watchdog has dealt them, else as evenly as possible. Reports to the watchdog how many of
// them this process computes one after the other, so that the watchdog can notice a slow process.
static holdfast_status share_out(Process* process) {
  int own = 0;
  for (int rank = 0, shard = 0; rank < process->size; ++rank) {
    int count = holdfast_worker_dealt_shards(process->worker, rank);
    if (count == 0) count = SHARDS / process->size + (rank < SHARDS % process->size);
    if (rank == process->rank) own = count;
    for (; count > 0 && shard < SHARDS; --count) process->rank_of[shard++] = rank;
  }
  return own == 0 ? HOLDFAST_OK : holdfast_worker_report_work(process->worker, own, 1);
}

static holdfast_status begin_generation(Process* process) {
  holdfast_status status =
      holdfast_worker_enter_generation(process->worker, process->state.step, 4 * process->patience);
  if (status != HOLDFAST_OK) return status;
  process->rank = holdfast_worker_rank(process->worker);
  process->size = holdfast_worker_size(process->worker);
  process->count = 0;
  status = share_out(process);
  if (status != HOLDFAST_OK) return status;
  holdfast_worker_enter(process->worker, HOLDFAST_COMPUTING, process->state.step);
  status = holdfast_worker_exchange_arenas(process->worker, HOLDFAST_ARENA_HEADER_BYTES + sizeof(Arena),
                                           process->patience, &process->arenas);
  return status == HOLDFAST_OK ? agree_on_state(process) : status;
}

// Trains in one generation. Returns HOLDFAST_CANCELLED when another generation has to begin.
static holdfast_status train(Process* process, int64_t steps, int* was_stopped) {
  holdfast_status status = begin_generation(process);
  while (status == HOLDFAST_OK && process->state.step < steps) {
    Votes votes = {0, 0};
    status = train_a_step(process, &votes);
    if (status != HOLDFAST_OK) break;
    if (votes.stop) {
      *was_stopped = 1;
      break;
    }
    if (votes.regroup) status = HOLDFAST_CANCELLED;
  }
  holdfast_arenas_free(process->arenas);
  process->arenas = NULL;
  return status;
}

// Trains until the end, in as many generations as it takes. Returns the exit code.
static int run(Process* process, int64_t steps) {
  int was_stopped = 0;
  holdfast_status status = HOLDFAST_CANCELLED;
  while (status == HOLDFAST_CANCELLED) status = train(process, steps, &was_stopped);
  if (status != HOLDFAST_OK) {
    holdfast_worker_report_failure(process->worker, holdfast_last_error(), 0);
    return EXIT_FAILURE;
  }
  holdfast_worker_enter(process->worker, HOLDFAST_SAVING, process->state.step);
  if (process->rank == 0 && !write_file(process)) {
    holdfast_worker_report_failure(process->worker, "the state cannot be written to the run directory", 1);
    return EXIT_FAILURE;
  }
  if (was_stopped) return EXIT_STOPPED;
  if (process->rank == 0) {
    printf("y = %a x + %a after %lld steps\n", process->state.slope, process->state.intercept,
           (long long)process->state.step);
    fflush(stdout);
  }
  return holdfast_worker_report_finished(process->worker) == HOLDFAST_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char** argv) {
  const long long steps = argc > 1 ? atoll(argv[1]) : 10000;
  if (steps < 1) {
    fprintf(stderr, "usage: holdfast run [OPTIONS] -- %s [STEPS]\n", argv[0]);
    return 2;
  }
  Process process = {.state = {.step = -1}};
  if (holdfast_worker_join(60, &process.worker) != HOLDFAST_OK) {
    fprintf(stderr, "%s: %s; start it with: holdfast run -- %s\n", argv[0], holdfast_last_error(), argv[0]);
    return EXIT_FAILURE;
  }
  process.patience = holdfast_worker_patience_seconds(process.worker);
  const int exit_code = run(&process, steps);
  holdfast_worker_leave(process.worker);
  return exit_code;
}
