#pragma once

namespace holdfast {

// What happens to the run that a run directory holds when a program starts.
enum class Start {
  resume,  // the run goes on
  fresh,   // the run is put aside, as DIRECTORY.1 or the next free number, with its copies; a new one starts
};

}  // namespace holdfast
