#pragma once

// What signals do to this process.

namespace holdfast::recovery {

bool is_ignored(int signal);

// From here on a write that fails ends this process no longer, as SIGPIPE and SIGXFSZ do by default: neither that
// nobody reads what is said of a run, nor a limit of file sizes (ulimit -f), must end it. By a handler that does
// nothing, so that what this process starts has the default again. Where such a signal is ignored or has a handler
// already, that stays.
void outlive_failing_writes();

// For a process that is about to execute a program that will call take_failing_writes_back(): what it does until then
// is not ended by them either. Async-signal-safe.
void ignore_failing_writes();
// Those that are ignored have their default again.
void take_failing_writes_back();

}  // namespace holdfast::recovery
