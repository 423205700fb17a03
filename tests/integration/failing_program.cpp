// A program whose training function never gets to a Trainer:
//
//   failing_program returns | throws | crashes | exits RUN_DIRECTORY LOG_LEVEL

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "holdfast/holdfast.h"

namespace {
void fail(const std::string& way) {
  if (way == "throws") throw std::runtime_error("cannot open my own data.bin");
  if (way == "exits") ::_exit(3);
  if (way != "crashes") return;
  ::signal(SIGSEGV, SIG_DFL);
  ::raise(SIGSEGV);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: failing_program returns|throws|crashes|exits RUN_DIRECTORY LOG_LEVEL\n");
    return 2;
  }
  return holdfast::supervise(
      argc, argv, {.replicas = 2, .run_directory = argv[2], .log_level = holdfast::log_level_from_name(argv[3])},
      [&](holdfast::Replica&) { fail(argv[1]); });
}
