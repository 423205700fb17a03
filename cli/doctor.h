#pragma once

// `holdfast doctor`: what this machine can train on, what is wrong with it, and what to do about it. The same of the
// hosts of a run over several.

#include <string>

#include "diagnosis.h"
#include "holdfast/recovery/check_hosts.h"
#include "machine_facts.h"

namespace holdfast::cli {

// The report for people, and as JSON.
std::string describe_machine(const MachineFacts& facts, const Diagnosis& diagnosis);
std::string machine_as_json(const MachineFacts& facts, const Diagnosis& diagnosis);

// The same for a check of several hosts.
std::string describe_hosts(const recovery::HostsReport& report);
std::string hosts_as_json(const recovery::HostsReport& report);

}  // namespace holdfast::cli
