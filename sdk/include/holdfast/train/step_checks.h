#pragma once

// What fit() does about numbers that are wrong: not finite, or different on replicas that computed the same. Both are
// members of FitOptions.
//
//   trainer.fit(data.batch(64), {.when_not_finite = WhenNotFinite::skip_step, .check_gradients = {.every = 100}});

#include <cstdint>

namespace holdfast {

// What happens to a step whose loss, gradients or other sums are NaN or infinite. It also applies to a
// state with such parameters or optimizer slots that would be kept in a snapshot or a savepoint.
enum class WhenNotFinite {
  roll_back,  // all replicas go back to the last agreed state; the second time at the same step, they stop
  stop,       // throws Error{not_finite}, which ends the run
  skip_step,  // applies nothing; the step counts, but not its samples in the means of the epoch. A state is
              // rolled back, as above
  go_on,      // applies the step and keeps the state as it is
};

// How gradients that are wrong but finite are found. Two replicas compute the same shards and compare
// digests before anything is applied. If the digests differ, the step is computed again to find the
// replica that is wrong, and that replica is replaced. This changes no bit of the run. A single replica
// compares with itself and finds only errors that do not repeat.
struct GradientChecks {
  // Steps from one check to the next; 0: never. A step with a check takes up to twice as long, and samples of other
  // replicas must be loaded for it. With one shard per replica the default costs about 0.2 % of the time.
  std::int64_t every = 500;
  // How many shards of each replica are computed twice in such a step; 0: all.
  int shards = 1;
};

}  // namespace holdfast
