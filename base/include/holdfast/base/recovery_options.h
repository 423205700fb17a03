#pragma once

// How a run of replicas recovers, as its user chooses. SuperviseOptions has the same members; the watchdog and its
// supervisor take this struct as a whole. To add an option: a member here, a member of SuperviseOptions and its line in
// recovery_options_of() (sdk/src/train/supervise/supervise.cpp), and the code that obeys it.

namespace holdfast {

// What happens to a run that lost a replica while no spare is ready.
enum class WhenLost {
  wait,    // the run waits for a new process
  shrink,  // the run goes on at once with fewer replicas and the same bits; a new process joins at a step boundary
};

// Where the state comes from after a failure.
enum class RecoverFrom {
  survivors,  // replicas that live keep it; when none does, from the watchdog's memory, then from the newest savepoint
  savepoint,  // all replicas start again from the newest savepoint
};

// What happens to a replica that takes at least 1.5 times as long as the others over many steps. The journal records it
// in any case.
enum class WhenSlow {
  report,  // nothing else
  deal,    // it gets fewer shards, with the same bits, where that shortens a step by a tenth; more when it is quick
           // again. Needs more shards than replicas
  replace,  // a spare that is ready takes its place, once in `restart_window` for each device; not with
            // RecoverFrom::savepoint
};

}  // namespace holdfast
