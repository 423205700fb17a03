#include "holdfast/base/cores.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace holdfast {

int core_count() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  // The call fails on a machine with more cores than the set can name, where the library knows better.
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace holdfast
