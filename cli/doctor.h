#pragma once

// `holdfast doctor`: what this machine has to train on, what is wrong with it, and what to do about that.

#include <string>

#include "console.h"
#include "diagnosis.h"
#include "machine_facts.h"

namespace holdfast::cli {

struct Subcommands;

struct DoctorOptions {
  bool as_json = false;
};

// Returns kDone where training can run, on GPUs or, where there are none, on CPUs, and kCannotTrain where there are
// GPUs that cannot be used.
int doctor(const DoctorOptions& options, Console& console);

// As people read it, and as JSON.
std::string describe_machine(const MachineFacts& facts, const Diagnosis& diagnosis);
std::string machine_as_json(const MachineFacts& facts, const Diagnosis& diagnosis);

// Adds the subcommand with its options.
void add_doctor(Subcommands& commands);

}  // namespace holdfast::cli
