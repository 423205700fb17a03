#pragma once

// How the supervisor names things in its reasons and sentences, and in the scenarios of its tests.

#include <cstddef>
#include <string>
#include <string_view>

#include "decide/supervisor.h"

namespace holdfast::recovery {

// "1 replica", "3 replicas".
std::string counted(std::size_t count, std::string_view noun);
// Such as "8.0 s".
std::string seconds(Moment::duration duration);
// Such as "SIGTERM"; "signal 99" for one without a name.
std::string signal_name(int signal);
// "replica 1", or "process 4" for a member that was never in a generation.
std::string name_of(const Member& member);
// "process 4 (replica 1)": a process that cannot be killed may have had a rank that another one has now.
std::string full_name_of(const Member& member);
// Such as "killed by signal 9 (SIGKILL)" or "exited with code 3".
std::string describe_exit(const Event& event);
// "replica 1: killed by signal 9 (SIGKILL)".
std::string sentence_of(const LastFailure& failure);
// Its reason, and the failure after it.
std::string sentence_of(const RunEnding& ending);
std::string with_last_failure(const std::string& reason, const std::string& failure);

}  // namespace holdfast::recovery
