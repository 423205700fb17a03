// Two processes compute 6 shards in each step, rank 1 at half the speed of rank 0, until the watchdog has dealt the
// shards differently.

#include <holdfast/recovery/worker_c.h>
#include <stdio.h>
#include <time.h>

enum { RANKS = 2, SHARDS = 6, MOST_STEPS = 5000 };

typedef struct Process {
  holdfast_worker* worker;
  holdfast_arenas* arenas;
  int rank, shards;  // of this rank
  int64_t step;
} Process;

static int is_assigned(const Process* process) {
  return holdfast_worker_dealt_shards(process->worker, 0) > 0;
}

static void compute(const Process* process) {
  const struct timespec time_of_a_shard = {0, process->rank == 0 ? 4000000 : 8000000};
  for (int shard = 0; shard < process->shards; ++shard) nanosleep(&time_of_a_shard, NULL);
}

static void tell_of_the_deal(const Process* process) {
  char details[64];
  snprintf(details, sizeof details, "[%d, %d]", holdfast_worker_dealt_shards(process->worker, 0),
           holdfast_worker_dealt_shards(process->worker, 1));
  holdfast_worker_report_event(process->worker, "shards_dealt", details);
}

static holdfast_status enter(Process* process) {
  const holdfast_status status = holdfast_worker_enter_generation(process->worker, process->step, 60);
  if (status != HOLDFAST_OK) return status;
  process->rank = holdfast_worker_rank(process->worker);
  const int assigned = holdfast_worker_dealt_shards(process->worker, process->rank);
  process->shards = assigned > 0 ? assigned : SHARDS / RANKS;
  return holdfast_worker_exchange_arenas(process->worker, HOLDFAST_ARENA_HEADER_BYTES, 60, &process->arenas);
}

// Both processes wait for each other after each step. Returns HOLDFAST_CANCELLED when another generation has to begin.
static holdfast_status train_a_step(Process* process, uint32_t count) {
  holdfast_worker_enter(process->worker, HOLDFAST_COMPUTING, process->step);
  compute(process);
  holdfast_worker_enter(process->worker, HOLDFAST_WAITING_FOR_PEERS, process->step);
  holdfast_arenas_count_up(process->arenas);
  const holdfast_status status = holdfast_arenas_wait_for(process->arenas, 1 - process->rank, count, 60);
  if (status != HOLDFAST_OK) return status;
  ++process->step;
  return holdfast_worker_regroup_requested(process->worker) ? HOLDFAST_CANCELLED : HOLDFAST_OK;
}

static holdfast_status train(Process* process) {
  holdfast_status status = enter(process);
  if (status == HOLDFAST_OK) status = holdfast_worker_report_work(process->worker, process->shards, 1);
  if (status == HOLDFAST_OK && is_assigned(process)) {
    tell_of_the_deal(process);
  } else {
    for (uint32_t count = 1; status == HOLDFAST_OK; ++count) {
      status = process->step < MOST_STEPS ? train_a_step(process, count) : HOLDFAST_DEADLINE_EXCEEDED;
    }
  }
  holdfast_arenas_free(process->arenas);
  process->arenas = NULL;
  return status;
}

static int fail(const Process* process, const char* what) {
  holdfast_worker_report_failure(process->worker, what, 1);
  return 1;
}

static int run(Process* process) {
  if (holdfast_worker_dealt_shards(process->worker, 0) != 0) return fail(process, "shards are dealt at the start");
  if (holdfast_worker_report_work(process->worker, 0, 1) != HOLDFAST_INVALID_ARGUMENT) {
    return fail(process, "a report of 0 shards was accepted");
  }
  holdfast_status status = HOLDFAST_CANCELLED;
  while (status == HOLDFAST_CANCELLED) status = train(process);
  if (status != HOLDFAST_OK) return fail(process, "shards were not dealt differently, or a call failed");
  if (holdfast_worker_dealt_shards(process->worker, -1) + holdfast_worker_dealt_shards(process->worker, RANKS) != 0) {
    return fail(process, "shards were dealt to a rank that does not exist");
  }
  return holdfast_worker_report_finished(process->worker) == HOLDFAST_OK ? 0 : 1;
}

int main(void) {
  Process process = {NULL, NULL, 0, 0, 0};
  if (holdfast_worker_join(60, &process.worker) != HOLDFAST_OK) return 1;
  const int exit_code = run(&process);
  holdfast_worker_leave(process.worker);
  return exit_code;
}
