#pragma once

// How this process reacts to signals.

namespace holdfast::recovery {

bool is_ignored(int signal);

// From here on SIGPIPE and SIGXFSZ no longer end this process: neither a reader that closes the output of a run, nor
// a limit of file sizes (ulimit -f), may end the run. The signals get a handler that does nothing, so that programs
// that this process starts have the default again. A signal that is ignored or has a handler is left alone.
void outlive_failing_writes();

// Ignores both signals, for a process that is about to execute a program that calls take_failing_writes_back(). Until
// that call they do not end the program either. Async-signal-safe.
void ignore_failing_writes();
// Gives the default back to those of the two that are ignored.
void take_failing_writes_back();

}  // namespace holdfast::recovery
