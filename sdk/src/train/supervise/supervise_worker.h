#pragma once

// A replica's process as its watchdog's worker: the only bridge between training and recovery. It turns what training
// tells and asks (place.h) into messages to the watchdog, from which the run's choices come.

#include <memory>
#include <optional>
#include <string>

#include "holdfast/recovery/worker.h"
#include "train/context/place.h"
#include "train/supervise/program_calls.h"
#include "train/supervise/run_choices.h"

namespace holdfast {

// What the watchdog hands to each of its workers (Worker::config).
std::string worker_config(const SuperviseOptions& options, const RunChoices& choices, const AssignedCalls& calls);
// The program's calls, as the configuration has them; empty where the watchdog is another program's.
std::optional<AssignedCalls> calls_of(const recovery::Worker& worker);

// The place of this process in the run; the worker outlives it. A worker without a configuration, as `holdfast run`
// starts them, settles the choices itself, by `options`.
std::shared_ptr<Replica::Place> place_of(recovery::Worker& worker, const SuperviseOptions& options);

}  // namespace holdfast
