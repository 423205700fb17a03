#pragma once

// How another process talks to the watchdog of a live run: through the Unix socket RUN_DIRECTORY/control, which only
// the run's owner and root may use. A request is one line of JSON, and so is its answer:
//
//   {"command": "status"}                     {"ok": true, "phase": "running", "generation": 3, "members": [...], ...}
//   {"command": "scale", "replicas": 3}       {"ok": true, "target": 3, "reason": "..."}
//   {"command": "snapshot", "seconds": 60}    {"ok": true, "path": "...", "step": 120}, once it is durable
//
// What cannot be done is answered with {"ok": false, "error": "a sentence"}.

#include <string>

#include "holdfast/base/deadline.h"

namespace holdfast::recovery {

// `request` is JSON text. Returns the answer's text, whatever it says. Throws Error{not_found} where no watchdog of a
// live run listens, Error{deadline_exceeded}, Error{input_output} when the watchdog leaves without an answer,
// Error{invalid_argument} for a request of more than one line.
std::string ask_run(const std::string& run_directory, const std::string& request, Deadline deadline);

}  // namespace holdfast::recovery
