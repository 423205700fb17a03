#pragma once

// What is wrong with a machine, what to do about it, and what Holdfast will train on: a pure function of facts.

#include <string>
#include <string_view>
#include <vector>

#include "machine_facts.h"

namespace holdfast::cli {

enum class Severity {
  note,     // good to know
  warning,  // training runs, but slower or with fewer devices
  error,    // the GPUs cannot be used
};
std::string_view to_string(Severity severity);

struct Finding {
  Severity severity = Severity::note;
  std::string what{};
  std::string remedy{};  // what to do; empty: `what` says it
};

struct Diagnosis {
  std::vector<Finding> findings{};  // the worst first
  std::string plan{};               // "trains on cuda:0, cuda:1 with NCCL 2.28.9"
  bool can_train = true;            // on its GPUs, or on its CPUs if it has no GPU
};

// The oldest versions that training runs with.
inline constexpr Version kOldestCuda{HOLDFAST_CUDA_MAJOR, 0, 0};  // of the driver; the runtime is part of the build
inline constexpr Version kOldestCudnn{9, 8, 0};
inline constexpr Version kOldestNccl{2, 18, 0};
inline constexpr int kOldestArchitecture = 8;  // the major number of the compute capability

Diagnosis diagnose(const MachineFacts& facts);

// The state of a driver whose management library does not answer, in a few words.
std::string describe_silent_driver(const MachineFacts& facts);

}  // namespace holdfast::cli
