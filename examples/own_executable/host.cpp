// An application that cannot be executed again as a replica: it has a window, or holds a device, or is another program
// that has loaded this code as a plug-in. It is only the watchdog. Its replicas execute a program of their own
// (trainer.cpp), which calls supervise() with the same run directory.
//
//   own_executable_host TRAINER DIRECTORY

#include <cstdio>
#include <string>

#include "holdfast/holdfast.h"

using namespace holdfast;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: own_executable_host TRAINER DIRECTORY\n");
    return 2;
  }
  std::printf("the window opens\n");
  SuperviseOptions options{.replicas = 2, .run_directory = argv[2]};
  options.replica_executable = argv[1];
  options.replica_arguments = {"trainer", argv[2]};
  options.shards = 2;
  const int code = supervise(argc, argv, options, nullptr);
  if (code != 0) return code;
  const RunResults run = run_results(argv[2]);
  std::printf("trained %ld steps, loss %.6f, weights %s\n", static_cast<long>(run.steps),
              run.calls.back().results.at("loss"), run.weights_digest.c_str());
}
