#pragma once

// Which decisions the user reads in the log, besides the lines of incidents (journal/incident_story.h). The journal has
// all of them.

#include <optional>

#include "decide/supervisor.h"
#include "holdfast/base/log.h"

namespace holdfast::recovery {

// The level at which the log has the reason of the decision, once; nothing: the journal alone has it.
// `has_parted_hosts`: with it the run goes on without one of two hosts that had no connection.
std::optional<LogLevel> told_level(const Event& event, const Decision& decision, bool has_parted_hosts);

}  // namespace holdfast::recovery
