#pragma once

// The tables of faults: their names, the keys that they take, and what they do. A new kind is an enumerator and a
// row.

#include <array>
#include <chrono>
#include <span>
#include <string_view>

#include "holdfast/recovery/faults.h"

namespace holdfast::recovery {

// How a fault acts. That decides in which phases it can strike.
enum class FaultMeans {
  process,  // the process does it to itself, anywhere
  state,    // training changes a number for it
  pace,     // training takes longer for it
  files,    // the file system of savepoints fails for it
};

// Keys that only some kinds take, as bits.
using FaultKeys = unsigned;
inline constexpr FaultKeys kNoKeys = 0;
inline constexpr FaultKeys kDuration = 1;
inline constexpr FaultKeys kFactor = 2;
inline constexpr FaultKeys kCount = 4;
inline constexpr FaultKeys kSeed = 8;
inline constexpr FaultKeys kTarget = 16;

struct FaultKeyName {
  FaultKeys key;
  std::string_view name;
};
inline constexpr std::array<FaultKeyName, 5> kFaultKeyNames{
    {{kDuration, "duration_ms"}, {kFactor, "factor"}, {kCount, "count"}, {kSeed, "seed"}, {kTarget, "target"}}};

// Runs on the thread that reached the phase: the thread that trains, or the one that writes savepoints.
using Strike = void (*)(const Fault& fault, const Faults::Process& process);

// The values of keys that are not given.
struct FaultDefaults {
  std::chrono::milliseconds duration{};
  double factor = 1;
  CorruptionTarget target = CorruptionTarget::weight;
};

struct FaultKindRow {
  FaultKind value;
  std::string_view name;
  std::string_view other_name;  // empty: none
  FaultMeans means;
  FaultKeys keys;
  Strike strike;  // only for FaultMeans::process
  FaultDefaults defaults{};
};

// `possible`: a run may load a state before any step, or again after a step at which all replicas were lost.
enum class StepUse { none, possible, needed };

struct FaultPhaseRow {
  FaultPhase value;
  std::string_view name;
  std::string_view other_name;  // empty: none
  StepUse step;
  // Rank 0 alone reads and writes savepoints, so a fault for another rank would never strike here.
  bool is_of_rank_zero;
};

struct CorruptionTargetRow {
  CorruptionTarget value;
  std::string_view name;
  std::string_view other_name;
};

std::span<const FaultKindRow> fault_kind_rows();
std::span<const FaultPhaseRow> fault_phase_rows();
std::span<const CorruptionTargetRow> corruption_target_rows();

const FaultKindRow& row_of(FaultKind kind);
const FaultPhaseRow& row_of(FaultPhase phase);

// The phase of a fault whose specification names none.
FaultPhase default_phase(const Fault& fault);

}  // namespace holdfast::recovery
