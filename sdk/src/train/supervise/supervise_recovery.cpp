#include "train/supervise/supervise_recovery.h"

namespace holdfast {

RecoveryOptions recovery_options_of(const SuperviseOptions& options) {
  return {.spares = options.spares,
          .when_lost = options.when_lost,
          .recover_from = options.recover_from,
          .when_slow = options.when_slow,
          .max_restarts = options.max_restarts,
          .restart_window = options.restart_window,
          .place_rest = options.place_rest,
          .start_when_gone = options.start_when_gone,
          .hang_after = options.hang_after,
          .callback_timeout = options.callback_timeout,
          .start_timeout = options.start_timeout,
          .stop_grace = options.stop_grace,
          .faults = options.faults,
          .log_level = options.log_level};
}

}  // namespace holdfast
