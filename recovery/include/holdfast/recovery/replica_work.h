#pragma once

// What a replica's process computes in each step of its generation, by which the watchdog compares the speed of
// processes (Worker::report_work()).

namespace holdfast::recovery {

struct ReplicaWork {
  int shards = 1;   // in each step, at least 1
  int at_once = 1;  // the most that it computes side by side, at least 1
};

}  // namespace holdfast::recovery
