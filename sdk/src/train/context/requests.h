#pragma once

// What a replica asks of all others with a step. Each rank adds its requests to the sums of the step, so every rank
// sees the same requests at the same step. docs/decisions/training-loop.md

namespace holdfast {

struct StepRequests {
  bool stop = false;        // training ends after this step, and leaves a savepoint
  bool regroup = false;     // a new generation begins after this step
  bool savepoint = false;   // rank 0 writes one of the state after this step, while training goes on
  bool comparison = false;  // the ranks compare their states after this step
  bool end = false;         // fit() ends after this step, as if a callback of every rank had asked for it

  // Adds the requests of `other`.
  StepRequests& operator|=(const StepRequests& other) {
    stop |= other.stop;
    regroup |= other.regroup;
    savepoint |= other.savepoint;
    comparison |= other.comparison;
    end |= other.end;
    return *this;
  }
};

}  // namespace holdfast
