#pragma once

// How a program begins that finds a run in its run directory. SuperviseOptions::start says it, or `holdfast run
// --fresh`. Where they say nothing, the environment variable HOLDFAST_START does. By default the run goes on, so a
// program that is started again needs no other arguments. See holdfast/recovery/run_start.h.

namespace holdfast {

// What happens to the run that a run directory holds when a program starts.
enum class Start {
  resume,  // the run goes on
  fresh,   // the run is put aside, as DIRECTORY.1 or the next free number, with its copies; a new one starts
};

}  // namespace holdfast
