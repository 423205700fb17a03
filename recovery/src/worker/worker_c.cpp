// Each function catches every exception, since none may cross into C. The sentence of the newest failure is kept per
// thread. The library exports nothing else, so that C++ symbols may change between versions.
// docs/decisions/holdfast-run.md

#include "holdfast/recovery/worker_c.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/base/signal_word.h"
#include "holdfast/recovery/worker.h"
#include "worker/worker_status.h"

using holdfast::Deadline;
using holdfast::Error;
using holdfast::ErrorCode;
using holdfast::SharedMemory;
using holdfast::SignalWord;
using holdfast::recovery::MemorySnapshots;
using holdfast::recovery::Phase;
using holdfast::recovery::status_of;
using holdfast::recovery::Worker;

// What a C caller holds: the worker, and memory that must outlive single calls. C sees a pointer to an incomplete type.
struct holdfast_worker {
  std::unique_ptr<Worker> worker;
  std::optional<MemorySnapshots> written;
  std::vector<SharedMemory> read;  // holds the bytes of the newest read_snapshot()
};

// The rank is kept, because the worker may have another one when a later generation frees these arenas.
struct holdfast_arenas {
  int rank = 0;
  Worker::Arena memory;
};

namespace {

// A snapshot that is a little larger than the one before should not need new memory.
constexpr std::size_t kSpareSnapshotBytes = 4096;

thread_local std::string last_error;

// The C header repeats the enumerators of Phase, and holdfast_worker_enter() casts between the two.
static_assert(static_cast<int>(Phase::starting) == HOLDFAST_STARTING &&
              static_cast<int>(Phase::computing) == HOLDFAST_COMPUTING &&
              static_cast<int>(Phase::waiting_for_peers) == HOLDFAST_WAITING_FOR_PEERS &&
              static_cast<int>(Phase::updating) == HOLDFAST_UPDATING &&
              static_cast<int>(Phase::saving) == HOLDFAST_SAVING &&
              static_cast<int>(Phase::callbacks) == HOLDFAST_CALLBACKS &&
              static_cast<int>(Phase::evaluating) == HOLDFAST_EVALUATING &&
              static_cast<int>(Phase::finishing) == HOLDFAST_FINISHING &&
              static_cast<int>(Phase::reading_data) == HOLDFAST_READING_DATA);
static_assert(sizeof(SignalWord) <= HOLDFAST_ARENA_HEADER_BYTES);

// There may be no memory even for the sentence.
holdfast_status fail(holdfast_status status, const char* sentence) noexcept {
  try {
    last_error = sentence;
  } catch (const std::bad_alloc&) {
    last_error.clear();
  }
  return status;
}

// The only place that turns exceptions into codes, so that no function can forget a kind of them.
template <class Function>
holdfast_status guarded(const Function& function) noexcept {
  try {
    function();
    return HOLDFAST_OK;
  } catch (const Error& error) {
    return fail(status_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(HOLDFAST_OUT_OF_MEMORY, "there is no memory left");
  } catch (const std::exception& error) {
    return fail(HOLDFAST_FAILED, error.what());
  } catch (...) {
    return fail(HOLDFAST_FAILED, "an exception was thrown that is not a std::exception");
  }
}

// A null pointer is a mistake that can be reported. Reading it would end the process instead.
void require(bool is_given, const char* name) {
  if (!is_given) throw Error(ErrorCode::invalid_argument, fmt::format("{} is NULL", name));
}

// A year is longer than any wait, and far larger numbers do not fit into the clock. NaN fails the comparison.
Deadline after(double seconds) {
  constexpr double kMostSeconds = 366.0 * 24 * 3600;
  if (!(seconds >= 0)) throw Error(ErrorCode::invalid_argument, "a timeout must be 0 or more seconds");
  // Cut before the conversion. A double beyond the range of the clock's integer has an undefined result.
  const std::chrono::duration<double> duration(std::min(seconds, kMostSeconds));
  return Deadline::after(std::chrono::duration_cast<Deadline::Clock::duration>(duration));
}

// The own arena is writable and kept apart, so the list has an empty place at the own rank.
SharedMemory& memory_of(holdfast_arenas& arenas, int rank) {
  return rank == arenas.rank ? arenas.memory.own : arenas.memory.all[static_cast<std::size_t>(rank)];
}

bool has_rank(const holdfast_arenas& arenas, int rank) {
  return rank >= 0 && static_cast<std::size_t>(rank) < arenas.memory.all.size();
}

const std::byte* bytes_of(const holdfast_arenas& arenas, int rank) {
  // The memory is only read. One look-up serves both, instead of two copies of its rule.
  return memory_of(const_cast<holdfast_arenas&>(arenas), rank).readable().data();
}

// The counter begins the header, where the watchdog finds it to cancel all waits.
const SignalWord& counter_of(const holdfast_arenas& arenas, int rank) {
  return *reinterpret_cast<const SignalWord*>(bytes_of(arenas, rank));
}

void wait_for(const holdfast_arenas& arenas, int rank, std::uint32_t count, Deadline deadline) {
  switch (counter_of(arenas, rank).wait_until(count, deadline)) {
    case SignalWord::Outcome::reached:
      return;
    case SignalWord::Outcome::cancelled:
      throw Error(ErrorCode::cancelled, "the generation has ended");
    case SignalWord::Outcome::deadline_passed:
      throw Error(ErrorCode::deadline_exceeded, fmt::format("rank {} did not count up to {} in time; it is at {}", rank,
                                                            count, counter_of(arenas, rank).count()));
  }
}

void write_snapshot(holdfast_worker& worker, std::int64_t step, std::span<const std::byte> bytes, Deadline deadline) {
  if (!worker.written || worker.written->capacity_bytes() < bytes.size()) {
    // An eighth more, so that a state that grows slowly does not ask for memory at each snapshot.
    const std::size_t capacity = bytes.size() + bytes.size() / 8 + kSpareSnapshotBytes;
    // The watchdog holds this memory, too, so the snapshot outlives the process.
    worker.written = worker.worker->request_snapshot_memory(capacity, deadline);
  }
  worker.written->write(worker.worker->generation(), step, bytes.size(),
                        [&](std::size_t begin, std::span<std::byte> piece) {
                          std::memcpy(piece.data(), bytes.data() + begin, piece.size());
                        });
}

MemorySnapshots::Whole read_snapshot(holdfast_worker& worker) {
  // Kept in the worker, because the caller gets a pointer into this memory.
  worker.read = worker.worker->take_snapshot_memories();
  std::optional<MemorySnapshots::Whole> newest;
  for (const SharedMemory& memory : worker.read) {
    const auto candidate = MemorySnapshots::newest(memory);
    // A process that died while it wrote may have left a torn one, which newest() passes over.
    if (candidate && (!newest || candidate->step > newest->step)) newest = candidate;
  }
  if (!newest) throw Error(ErrorCode::not_found, "the watchdog has no whole snapshot in memory");
  return *newest;
}

}  // namespace

const char* holdfast_last_error(void) {
  return last_error.c_str();
}

int holdfast_is_worker(void) {
  return holdfast::recovery::is_worker() ? 1 : 0;
}

holdfast_status holdfast_worker_join(double timeout_seconds, holdfast_worker** worker) {
  return guarded([&] {
    require(worker != nullptr, "worker");
    auto joined = std::make_unique<holdfast_worker>();
    joined->worker = Worker::join(after(timeout_seconds));
    // Last: when anything above fails, the caller's pointer is as it was.
    *worker = joined.release();
  });
}

// NULL is allowed, as for free().
void holdfast_worker_leave(holdfast_worker* worker) {
  delete worker;
}

holdfast_status holdfast_worker_enter_generation(holdfast_worker* worker, int64_t state_step, double timeout_seconds) {
  return guarded([&] {
    require(worker != nullptr, "worker");
    worker->worker->enter_generation(after(timeout_seconds), state_step);
  });
}

int holdfast_worker_rank(const holdfast_worker* worker) {
  return worker->worker->rank();
}
int holdfast_worker_size(const holdfast_worker* worker) {
  return worker->worker->size();
}
int holdfast_worker_generation(const holdfast_worker* worker) {
  return worker->worker->generation();
}
const char* holdfast_worker_run_directory(const holdfast_worker* worker) {
  return worker->worker->run_directory().c_str();
}
double holdfast_worker_patience_seconds(const holdfast_worker* worker) {
  return std::chrono::duration<double>(worker->worker->patience()).count();
}

// The enumerators are equal, as the assertion at the top of this file says.
void holdfast_worker_enter(holdfast_worker* worker, holdfast_phase phase, int64_t step) {
  worker->worker->enter(static_cast<Phase>(phase), step);
}
void holdfast_worker_beat(holdfast_worker* worker) {
  worker->worker->beat();
}
int holdfast_worker_stop_requested(const holdfast_worker* worker) {
  return worker->worker->requests().stop ? 1 : 0;
}
int holdfast_worker_regroup_requested(const holdfast_worker* worker) {
  return worker->worker->requests().regroup ? 1 : 0;
}

// The number of the request, by which the program reports what became of it; 0 without one.
int holdfast_worker_savepoint_requested(const holdfast_worker* worker) {
  return worker->worker->requests().savepoint;
}
// NULL gets a text of its own in these reports: something has failed already, and the report must not fail as well.
void holdfast_worker_report_savepoint(holdfast_worker* worker, int number, const char* path, int64_t step) {
  guarded([&] { worker->worker->report_savepoint(number, path == nullptr ? "" : path, step); });
}
void holdfast_worker_report_no_savepoint(holdfast_worker* worker, int number, const char* why) {
  guarded([&] { worker->worker->report_no_savepoint(number, why == nullptr ? "failed without saying why" : why); });
}

// 0 where the watchdog has assigned nothing. The program then assigns shards itself.
int holdfast_worker_dealt_shards(const holdfast_worker* worker, int rank) {
  const std::vector<int>& shards = worker->worker->assigned_shards();
  const bool is_assigned = rank >= 0 && static_cast<std::size_t>(rank) < shards.size();
  return is_assigned ? shards[static_cast<std::size_t>(rank)] : 0;
}
holdfast_status holdfast_worker_report_work(holdfast_worker* worker, int shards, int at_once) {
  return guarded([&] {
    require(worker != nullptr, "worker");
    worker->worker->report_work({.shards = shards, .at_once = at_once});
  });
}

holdfast_status holdfast_worker_exchange_arenas(holdfast_worker* worker, size_t bytes, double timeout_seconds,
                                                holdfast_arenas** arenas) {
  return guarded([&] {
    require(worker != nullptr, "worker");
    require(arenas != nullptr, "arenas");
    if (bytes < HOLDFAST_ARENA_HEADER_BYTES) {
      throw Error(ErrorCode::invalid_argument, fmt::format("an arena of {} bytes has no room for its header of {}",
                                                           bytes, HOLDFAST_ARENA_HEADER_BYTES));
    }
    // Asked before memory is made for it: other hosts could not map it.
    if (worker->worker->host_ranks().size() > 1) {
      throw Error(
          ErrorCode::unsupported,
          "the replicas of this generation are on several hosts, which cannot read each other's memory; run the "
          "program on one host");
    }
    auto exchanged = std::make_unique<holdfast_arenas>();
    exchanged->rank = worker->worker->rank();
    exchanged->memory = worker->worker->exchange_arenas(bytes, after(timeout_seconds));
    *arenas = exchanged.release();
  });
}

void holdfast_arenas_free(holdfast_arenas* arenas) {
  delete arenas;
}

// The bytes of the caller follow the header, which belongs to the counter. It is a cache line, so the caller's bytes
// are aligned and share no line with the counter.
void* holdfast_arenas_own(holdfast_arenas* arenas) {
  return arenas->memory.own.writable().data() + HOLDFAST_ARENA_HEADER_BYTES;
}

// NULL for a rank that does not exist, since a function without a status cannot report it.
const void* holdfast_arenas_of(const holdfast_arenas* arenas, int rank) {
  return has_rank(*arenas, rank) ? bytes_of(*arenas, rank) + HOLDFAST_ARENA_HEADER_BYTES : nullptr;
}

void holdfast_arenas_count_up(holdfast_arenas* arenas) {
  reinterpret_cast<SignalWord*>(arenas->memory.own.writable().data())->count_up();
}

holdfast_status holdfast_arenas_wait_for(const holdfast_arenas* arenas, int rank, uint32_t count,
                                         double timeout_seconds) {
  return guarded([&] {
    require(arenas != nullptr, "arenas");
    // A wrong rank would be read from memory outside the list.
    if (!has_rank(*arenas, rank)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("there is no rank {} among {}", rank, arenas->memory.all.size()));
    }
    wait_for(*arenas, rank, count, after(timeout_seconds));
  });
}

int holdfast_arenas_are_cancelled(const holdfast_arenas* arenas) {
  return counter_of(*arenas, arenas->rank).is_cancelled() ? 1 : 0;
}

holdfast_status holdfast_worker_write_snapshot(holdfast_worker* worker, int64_t step, const void* bytes, size_t size,
                                               double timeout_seconds) {
  return guarded([&] {
    require(worker != nullptr, "worker");
    require(bytes != nullptr || size == 0, "bytes");
    write_snapshot(*worker, step, {static_cast<const std::byte*>(bytes), size}, after(timeout_seconds));
  });
}

holdfast_status holdfast_worker_read_snapshot(holdfast_worker* worker, int64_t* step, const void** bytes,
                                              size_t* size) {
  return guarded([&] {
    require(worker != nullptr, "worker");
    require(step != nullptr && bytes != nullptr && size != nullptr, "step, bytes or size");
    const MemorySnapshots::Whole newest = read_snapshot(*worker);
    *step = newest.step;
    *bytes = newest.bytes.data();
    *size = newest.bytes.size();
  });
}

void holdfast_worker_report_failure(holdfast_worker* worker, const char* what, int is_unrecoverable) {
  guarded([&] {
    worker->worker->report_failure(what == nullptr ? "failed without saying why" : what, is_unrecoverable != 0);
  });
}

holdfast_status holdfast_worker_report_finished(holdfast_worker* worker) {
  return guarded([&] {
    require(worker != nullptr, "worker");
    worker->worker->report_finished();
  });
}

void holdfast_worker_report_event(holdfast_worker* worker, const char* name, const char* details) {
  guarded([&] { worker->worker->report_event(name == nullptr ? "" : name, details == nullptr ? "null" : details); });
}
