#pragma once

// What signals do to this process.

namespace holdfast::recovery {

bool is_ignored(int signal);

// From here on a write to a pipe that nobody reads any more fails and ends this process no longer, as SIGPIPE does by
// default: what is said of a run must not end it. By a handler that does nothing, so that what this process starts has
// the default again. Where the signal is ignored or has a handler already, that stays.
void outlive_broken_pipes();

}  // namespace holdfast::recovery
