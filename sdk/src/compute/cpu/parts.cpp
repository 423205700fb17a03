// Teams are OpenMP's, whose threads oneDNN has started anyway: threads of our own would compete with them for the
// cores.
//
// GCC's OpenMP runtime is not instrumented, so the thread sanitizer sees neither the begin nor the end of a team. It is
// told of both here. The function that starts the team is left out, because the compiler passes variables of it to the
// team before any code of ours runs.

#include "compute/cpu/parts.h"

#include <omp.h>

#include "holdfast/base/sanitizers.h"

#ifdef HOLDFAST_THREAD_SANITIZED
#include <sanitizer/tsan_interface.h>
#define HOLDFAST_NOT_SANITIZED __attribute__((no_sanitize("thread")))
#else
#define HOLDFAST_NOT_SANITIZED
#endif

namespace holdfast::compute {

namespace {

struct Team {
  void (*run)(const void* context, int part);
  const void* context;
  char begin = 0;  // stand for the begin and end of the team
  char end = 0;
};

void begin_team([[maybe_unused]] Team& team) {
#ifdef HOLDFAST_THREAD_SANITIZED
  __tsan_release(&team.begin);
#endif
}

void end_team([[maybe_unused]] Team& team) {
#ifdef HOLDFAST_THREAD_SANITIZED
  __tsan_acquire(&team.end);
#endif
}

[[gnu::noinline]] void run_member(Team& team, int part) {
#ifdef HOLDFAST_THREAD_SANITIZED
  __tsan_acquire(&team.begin);
#endif
  team.run(team.context, part);
#ifdef HOLDFAST_THREAD_SANITIZED
  __tsan_release(&team.end);
#endif
}

HOLDFAST_NOT_SANITIZED __attribute__((noinline)) void run_team(Team& team, int parts) {
#pragma omp parallel num_threads(parts)
  {
    // A team may be smaller than it was asked to be.
    for (int part = omp_get_thread_num(); part < parts; part += omp_get_num_threads()) run_member(team, part);
  }
}

}  // namespace

void run_parts(int parts, void (*run)(const void* context, int part), const void* context) {
  Team team = {.run = run, .context = context};
  begin_team(team);
  run_team(team, parts);
  end_team(team);
}

}  // namespace holdfast::compute
