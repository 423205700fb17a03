// A program whose training function never gets to a Trainer:
//
//   failing_program returns | throws | crashes | exits | writes | recurses | aborts RUN_DIRECTORY LOG_LEVEL

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

#include "holdfast/holdfast.h"

// Tests search for these names in the watchdog's output.
[[gnu::noinline]] void crash_at_a_wrong_address(volatile int* address) {
  *address = 1;
}
[[gnu::noinline]] int crash_by_recursion(volatile int* depth) {
  if (*depth < 0) return 0;
  volatile char room[4096];
  room[0] = 1;
  *depth = *depth + 1;
  return crash_by_recursion(depth) + room[0];
}
[[gnu::noinline]] void crash_by_abort() {
  std::abort();
}

namespace {

void fail(const std::string& way) {
  volatile int depth = 0;
  if (way == "writes") crash_at_a_wrong_address(nullptr);
  if (way == "recurses") crash_by_recursion(&depth);
  if (way == "aborts") crash_by_abort();
  if (way == "runs out of memory") throw std::bad_alloc();
  if (way == "throws") throw std::runtime_error("cannot open my own data.bin");
  if (way == "exits") ::_exit(3);
  if (way != "crashes") return;
  ::signal(SIGSEGV, SIG_DFL);
  ::raise(SIGSEGV);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(
        stderr, "usage: failing_program returns|throws|crashes|exits|writes|recurses|aborts RUN_DIRECTORY LOG_LEVEL\n");
    return 2;
  }
  return holdfast::supervise(
      argc, argv,
      {.replicas = 2, .recovery = {.log_level = holdfast::log_level_from_name(argv[3])}, .run_directory = argv[2]},
      [&](holdfast::Replica&) { fail(argv[1]); });
}
