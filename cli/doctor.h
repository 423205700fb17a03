#pragma once

// `holdfast doctor`: what this machine can train on, what is wrong with it, and what to do about it.

#include <string>

#include "console.h"
#include "diagnosis.h"
#include "machine_facts.h"

namespace holdfast::cli {

struct Subcommands;

struct DoctorOptions {
  bool as_json = false;
};

// Returns kDone when training can run on the GPUs, or on the CPUs of a machine without a GPU. Returns kCannotTrain when
// the machine has GPUs and none can be used.
int doctor(const DoctorOptions& options, Console& console);

// The report for people, and as JSON.
std::string describe_machine(const MachineFacts& facts, const Diagnosis& diagnosis);
std::string machine_as_json(const MachineFacts& facts, const Diagnosis& diagnosis);

// Adds the subcommand with its options.
void add_doctor(Subcommands& commands);

}  // namespace holdfast::cli
