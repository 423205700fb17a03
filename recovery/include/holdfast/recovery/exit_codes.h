#pragma once

// The codes with which a run ends (RunOutcome::exit_code), and with which a program under a watchdog should exit.

namespace holdfast::recovery {

inline constexpr int kExitFinished = 0;       // all replicas have finished
inline constexpr int kExitUnrecoverable = 1;  // a replica reported that a restart cannot help
inline constexpr int kExitGaveUp = 70;        // the restart budget is spent, or one step fails again and again
inline constexpr int kExitStopped = 75;       // by SIGINT, SIGTERM, SIGUSR1 or SIGHUP; starting again resumes

}  // namespace holdfast::recovery
