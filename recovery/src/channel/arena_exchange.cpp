// The watchdog creates all memory of a generation, and gives each rank one writable arena and read-only views of the
// others. So a replica can damage no memory of its peers, and a cancelled generation is cancelled in every arena at
// once. docs/decisions/sums.md

#include "channel/arena_exchange.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "channel/descriptors.h"
#include "channel/messages.h"
#include "holdfast/base/error.h"
#include "holdfast/base/signal_word.h"

namespace holdfast::recovery {
namespace {

// An arena begins with its signal word, as worker.h promises.
SignalWord& signal_of(SharedMemory& arena) {
  return *reinterpret_cast<SignalWord*>(arena.writable().data());
}

std::string list(const std::vector<std::size_t>& sizes) {
  std::string text;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    text += fmt::format("{}{}: {}", rank == 0 ? "rank " : ", rank ", rank, sizes[rank]);
  }
  return text;
}

bool are_alike(const std::vector<std::size_t>& sizes) {
  return std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) == sizes.end();
}

// The kernel knows the size. A number from the replica could be wrong.
std::size_t size_of(const FileDescriptor& descriptor) {
  struct stat status {};
  if (::fstat(descriptor.value(), &status) != 0) throw system_error(errno, "cannot read the size of shared memory");
  return static_cast<std::size_t>(status.st_size);
}

}  // namespace

ArenaExchange::ArenaExchange(int generation, int replicas) : generation_(generation), replicas_(replicas) {}

std::vector<ArenaExchange::Reply> ArenaExchange::request(int rank, int number, std::size_t bytes,
                                                         FileDescriptor shown) {
  // A process that was stopped and wakes up late may still ask. It learns that its generation is over.
  if (is_cancelled_) {
    std::vector<Reply> replies;
    replies.push_back(cancelled(rank, number));
    return replies;
  }
  // Ranks may be at different exchanges, so each number collects its own requests.
  ArenaRequests& requests = wanted_[number];
  requests.resize(static_cast<std::size_t>(replicas_));
  requests.at(rank) = Request{bytes, std::move(shown)};
  const bool is_complete =
      std::all_of(requests.begin(), requests.end(), [](const auto& request) { return request.has_value(); });
  if (!is_complete) return {};
  return answer(number, wanted_.extract(number).mapped());
}

// A refusal goes to all ranks. If one of them got no answer, it would wait until its deadline.
std::vector<ArenaExchange::Reply> ArenaExchange::answer(int number, const ArenaRequests& requests) {
  std::vector<std::size_t> wanted;
  std::vector<std::size_t> shown;
  for (const std::optional<Request>& request : requests) {
    wanted.push_back(request->bytes);
    if (request->shown.is_open()) shown.push_back(size_of(request->shown));
  }
  // All arenas get the size that rank 0 asked for. A rank that counts on more would get past their end.
  if (!are_alike(wanted)) {
    return refuse(number, ErrorCode::incompatible,
                  fmt::format("replicas want shared memory of different sizes, in bytes: {}", list(wanted)));
  }
  if (!shown.empty() && shown.size() < requests.size()) {
    return refuse(number, ErrorCode::incompatible, "some replicas show memory of their own, and some do not");
  }
  if (!are_alike(shown)) {
    return refuse(number, ErrorCode::incompatible,
                  fmt::format("replicas show memory of different sizes, as those of different models do, in bytes: {}",
                              list(shown)));
  }
  // cancel() writes this word of each arena.
  if (wanted.front() < sizeof(SignalWord)) {
    return refuse(number, ErrorCode::invalid_argument,
                  fmt::format("shared memory of {} bytes has no room for its signal word", wanted.front()));
  }
  try {
    // Where memory is short, the ranks get the error. The watchdog goes on, since the run depends on it.
    return create(number, requests);
  } catch (const Error& error) {
    return refuse(number, error.code(), error.what());
  }
}

std::vector<ArenaExchange::Reply> ArenaExchange::create(int number, const ArenaRequests& requests) {
  const std::size_t bytes = requests.front()->bytes;
  // All arenas exist before the first reply, so a failure here leaves no rank with a part of them.
  std::vector<SharedMemory> created;
  for (int rank = 0; rank < replicas_; ++rank) {
    // The name is seen in /proc/PID/maps, and tells a person whose memory it is.
    const std::string name = fmt::format("holdfast-arena-g{}-{}-r{}", generation_, number, rank);
    created.push_back(SharedMemory::create(name, bytes));
  }
  std::vector<Reply> replies;
  for (int rank = 0; rank < replicas_; ++rank) {
    Reply reply{rank, {.body = arena_message(kArena, {generation_, number}, bytes)}};
    for (int owner = 0; owner < replicas_; ++owner) {
      const SharedMemory& memory = created.at(owner);
      reply.message.descriptors.push_back(owner == rank ? duplicate(memory.descriptor())
                                                        : memory.read_only_descriptor());
    }
    for (const std::optional<Request>& request : requests) {
      if (request->shown.is_open()) reply.message.descriptors.push_back(duplicate(request->shown.value()));
    }
    replies.push_back(std::move(reply));
  }
  // Kept as long as the generation: a cancel must reach every wait, also in arenas that all ranks have.
  std::move(created.begin(), created.end(), std::back_inserter(arenas_));
  return replies;
}

std::vector<ArenaExchange::Reply> ArenaExchange::refuse(int number, ErrorCode code, const std::string& sentence) const {
  std::vector<Reply> replies;
  replies.reserve(static_cast<std::size_t>(replicas_));
  for (int rank = 0; rank < replicas_; ++rank) {
    replies.push_back({rank, {.body = arena_refusal({generation_, number}, code, sentence)}});
  }
  return replies;
}

// Arenas lie exchange after exchange, so those of one rank are `replicas_` apart.
std::uint64_t ArenaExchange::arrivals(int rank) const {
  std::uint64_t sum = 0;
  for (auto arena = static_cast<std::size_t>(rank); arena < arenas_.size();
       arena += static_cast<std::size_t>(replicas_)) {
    sum += reinterpret_cast<const SignalWord*>(arenas_[arena].readable().data())->count();
  }
  return sum;
}

ArenaExchange::Reply ArenaExchange::cancelled(int rank, int number) const {
  return {rank,
          {.body = arena_refusal({generation_, number}, ErrorCode::cancelled,
                                 fmt::format("generation {} was ended", generation_))}};
}

std::vector<ArenaExchange::Reply> ArenaExchange::cancel() {
  is_cancelled_ = true;
  for (SharedMemory& arena : arenas_) signal_of(arena).cancel();
  std::vector<Reply> replies;
  // These ranks have asked, and wait. The others are refused when they ask.
  for (const auto& [number, requests] : wanted_) {
    for (int rank = 0; rank < replicas_; ++rank) {
      if (requests.at(rank)) replies.push_back(cancelled(rank, number));
    }
  }
  wanted_.clear();
  return replies;
}

}  // namespace holdfast::recovery
