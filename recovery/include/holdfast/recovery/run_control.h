#pragma once

// How another process talks to the watchdog of a live run: through the Unix socket RUN_DIRECTORY/control, which only
// the run's owner and root may use. A request is one line of JSON, and so is its answer:
//
//   {"command": "status"}                     {"ok": true, "phase": "running", "generation": 3, "members": [...], ...}
//   {"command": "scale", "replicas": 3}       {"ok": true, "target": 3, "reason": "..."}
//   {"command": "snapshot", "seconds": 60}    {"ok": true, "path": "...", "step": 120}, once it is durable
//
// The status of a run over several hosts has also "hosts", and the "host" of each member. A request that cannot be met
// is answered with {"ok": false, "error": "a sentence"}.
//
//   const std::string answer = ask_run("run", R"({"command": "status"})", Deadline::after(std::chrono::seconds(5)));

#include <string>

#include "holdfast/base/deadline.h"

namespace holdfast::recovery {

// Sends the JSON text `request`, blocks until the answer has come, and returns its text, whatever it says. Throws
// Error{not_found} where no watchdog of a live run listens, Error{deadline_exceeded}, Error{input_output} when the
// watchdog leaves without an answer, Error{invalid_argument} for a request of more than one line.
std::string ask_run(const std::string& run_directory, const std::string& request, Deadline deadline);

}  // namespace holdfast::recovery
