#pragma once

// What signals do to this process.

namespace holdfast::recovery {

bool is_ignored(int signal);

// From here on SIGPIPE and SIGXFSZ no longer end this process: a reader that closes the output of a run must not end
// it, nor a limit of file sizes (ulimit -f). The handler does nothing, so that programs that this process starts have
// the default again. A signal that is ignored, or has a handler already, is left alone.
void outlive_failing_writes();

// For a process that is about to execute a program that will call take_failing_writes_back(): what it does until then
// is not ended by them either. Async-signal-safe.
void ignore_failing_writes();
// Those that are ignored have their default again.
void take_failing_writes_back();

}  // namespace holdfast::recovery
