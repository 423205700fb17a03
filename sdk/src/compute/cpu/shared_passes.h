#pragma once

// Passes over long arrays on all threads that a replica computes its shards with.

#include "core/worker_pool.h"
#include "holdfast/core/array_passes.h"

namespace holdfast::compute {

// Each worker of the pool has `threads_each` threads. The pool must outlive the result, which is called while the pool
// runs nothing else, by the thread that calls WorkerPool::run().
ArrayPasses shared_passes(WorkerPool& pool, int threads_each);

}  // namespace holdfast::compute
