// The threads are those that computed the shards and would wait otherwise: the pool's, and each one's team of OpenMP.
// See docs/decisions/sums.md.

#include "compute/cpu/shared_passes.h"

#include <algorithm>
#include <exception>
#include <mutex>

#include "compute/cpu/parts.h"

namespace holdfast::compute {
namespace {

// Waking a thread of the pool takes as long as one thread needs for about so many floats.
constexpr std::size_t kFloatsOfWorker = std::size_t{1} << 17;

// An exception must not leave a member of OpenMP's team.
class FirstException {
 public:
  template <class Run>
  void guard(const Run& run) noexcept {
    try {
      run();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!first_) first_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

struct Pass {
  std::size_t items;
  std::size_t floats_each;
  const PassOfRange& run;
};

// Ranges begin at multiples of so many items. Where an item is a float of each array, this is a cache line, so that no
// two threads write to one.
std::size_t items_of_line(const Pass& pass) {
  constexpr std::size_t kMostArrays = 64;
  return pass.floats_each < kMostArrays ? 16 : 1;
}

// The lines of items [begin, end), on the calling thread's team.
void run_lines(const Pass& pass, int threads, std::size_t begin, std::size_t end, FirstException& exception) {
  const std::size_t step = items_of_line(pass);
  const DividedWork lines = {.count = static_cast<std::int64_t>(end - begin),
                             .floats_each = static_cast<std::int64_t>(step * pass.floats_each)};
  for_each_part(threads, lines, [&](std::int64_t first, std::int64_t last) {
    exception.guard([&] {
      pass.run((begin + static_cast<std::size_t>(first)) * step,
               std::min((begin + static_cast<std::size_t>(last)) * step, pass.items));
    });
  });
}

void run_shared(WorkerPool& pool, int threads_each, const Pass& pass) {
  if (pass.items == 0) return;
  const std::size_t step = items_of_line(pass);
  const std::size_t lines = (pass.items + step - 1) / step;
  const std::size_t worthwhile = std::max<std::size_t>(pass.items * pass.floats_each / kFloatsOfWorker, 1);
  // Any number of parts gives the same bits (array_passes.h). So it may follow the size of the work alone.
  const std::size_t parts = std::min({static_cast<std::size_t>(pool.size()), worthwhile, lines});
  FirstException exception;
  const auto run_part = [&](std::size_t part) {
    run_lines(pass, threads_each, lines * part / parts, lines * (part + 1) / parts, exception);
  };
  if (parts == 1) {
    run_part(0);
  } else {
    pool.run(static_cast<int>(parts), [&](int, int part) { run_part(static_cast<std::size_t>(part)); });
  }
  exception.rethrow();
}

}  // namespace

ArrayPasses shared_passes(WorkerPool& pool, int threads_each) {
  return [&pool, threads_each](std::size_t items, std::size_t floats_each, const PassOfRange& pass) {
    run_shared(pool, threads_each, {items, floats_each, pass});
  };
}

}  // namespace holdfast::compute
