#pragma once

// How the supervisor names things in its reasons and sentences.

#include <string>

#include "decide/supervisor.h"

namespace holdfast::recovery {

std::string seconds(Moment::duration duration);
std::string signal_name(int signal);
// "replica 1", or "process 4" for one that was never part of a generation.
std::string name_of(const Member& member);
// A process that cannot be killed may have had the rank that another one has since: "process 4 (replica 1)".
std::string full_name_of(const Member& member);
std::string describe_exit(const Event& event);

}  // namespace holdfast::recovery
