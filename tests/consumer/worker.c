// Exchanges memory with its peer, in C.

#include <holdfast/recovery/worker_c.h>
#include <stdio.h>

static int fail(const char* what) {
  fprintf(stderr, "worker: %s: %s\n", what, holdfast_last_error());
  return 1;
}

int main(void) {
  holdfast_worker* worker = NULL;
  holdfast_arenas* arenas = NULL;
  if (holdfast_worker_join(60, &worker) != HOLDFAST_OK) return fail("join");
  if (holdfast_worker_enter_generation(worker, -1, 60) != HOLDFAST_OK) return fail("enter");
  if (holdfast_worker_exchange_arenas(worker, 4096, 60, &arenas) != HOLDFAST_OK) return fail("exchange");
  const int rank = holdfast_worker_rank(worker);
  const int peer = 1 - rank;
  *(int*)holdfast_arenas_own(arenas) = 10 + rank;
  holdfast_arenas_count_up(arenas);
  if (holdfast_arenas_wait_for(arenas, peer, 1, 60) != HOLDFAST_OK) return fail("wait");
  const int is_there = *(const int*)holdfast_arenas_of(arenas, peer) == 10 + peer;
  holdfast_arenas_free(arenas);
  if (is_there) holdfast_worker_report_finished(worker);
  holdfast_worker_leave(worker);
  return is_there ? 0 : 1;
}
