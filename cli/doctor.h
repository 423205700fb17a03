#pragma once

// `holdfast doctor`: what this machine can train on, what is wrong with it, and what to do about it.

#include <string>

#include "diagnosis.h"
#include "machine_facts.h"

namespace holdfast::cli {

// The report for people, and as JSON.
std::string describe_machine(const MachineFacts& facts, const Diagnosis& diagnosis);
std::string machine_as_json(const MachineFacts& facts, const Diagnosis& diagnosis);

}  // namespace holdfast::cli
