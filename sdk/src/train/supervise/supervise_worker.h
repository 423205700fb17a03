#pragma once

// A replica's process as the worker of its watchdog: the only bridge between training and recovery. It turns calls of
// training (Supervision in supervision.h) into messages to the watchdog, and the watchdog's configuration into a
// Replica::Context.

#include <memory>
#include <optional>
#include <string>

#include "holdfast/recovery/worker.h"
#include "train/context/replica_context.h"
#include "train/supervise/program_calls.h"
#include "train/supervise/run_choices.h"

namespace holdfast {

// The text that the watchdog passes to each of its workers (Worker::config).
std::string worker_config(const SuperviseOptions& options, const RunChoices& choices, const AssignedCalls& calls);
// The calls in the worker's configuration. Empty when the watchdog belongs to another program.
std::optional<AssignedCalls> calls_of(const recovery::Worker& worker);

// The context of this process in the run. The worker outlives it. A worker without a configuration, as under `holdfast
// run`, settles the choices itself, from `options`.
std::shared_ptr<Replica::Context> context_of(recovery::Worker& worker, const SuperviseOptions& options);

}  // namespace holdfast
