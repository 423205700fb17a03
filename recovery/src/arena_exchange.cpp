#include "arena_exchange.h"

#include <algorithm>
#include <string>
#include <utility>

#include "descriptors.h"
#include "holdfast/base/error.h"
#include "holdfast/base/signal_word.h"
#include "messages.h"

namespace holdfast::recovery {
namespace {

SignalWord& signal_of(SharedMemory& arena) {
  return *reinterpret_cast<SignalWord*>(arena.writable().data());
}

std::string list(const std::vector<std::optional<std::size_t>>& sizes) {
  std::string text;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    text += (rank == 0 ? "rank " : ", rank ") + std::to_string(rank) + ": " + std::to_string(*sizes[rank]);
  }
  return text;
}

}  // namespace

ArenaExchange::ArenaExchange(int generation, int replicas) : generation_(generation), replicas_(replicas) {}

std::vector<ArenaExchange::Reply> ArenaExchange::request(int rank, int number, std::size_t bytes) {
  if (is_cancelled_) {
    std::vector<Reply> replies;
    replies.push_back(cancelled(rank, number));
    return replies;
  }
  Sizes& sizes = wanted_[number];
  sizes.resize(static_cast<std::size_t>(replicas_));
  sizes.at(rank) = bytes;
  if (std::find(sizes.begin(), sizes.end(), std::nullopt) != sizes.end()) return {};
  const Sizes complete = std::move(wanted_.extract(number).mapped());
  if (std::adjacent_find(complete.begin(), complete.end(), std::not_equal_to<>()) != complete.end()) {
    return refuse(number, ErrorCode::incompatible,
                  "replicas want shared memory of different sizes, in bytes: " + list(complete));
  }
  if (bytes < sizeof(SignalWord)) {
    return refuse(number, ErrorCode::invalid_argument,
                  "shared memory of " + std::to_string(bytes) + " bytes has no room for its signal word");
  }
  try {
    return create(number, bytes);
  } catch (const Error& error) {
    return refuse(number, error.code(), error.what());
  }
}

std::vector<ArenaExchange::Reply> ArenaExchange::create(int number, std::size_t bytes) {
  std::vector<SharedMemory> created;
  for (int rank = 0; rank < replicas_; ++rank) {
    const std::string name =
        "holdfast-arena-g" + std::to_string(generation_) + "-" + std::to_string(number) + "-r" + std::to_string(rank);
    created.push_back(SharedMemory::create(name, bytes));
  }
  std::vector<Reply> replies;
  for (int rank = 0; rank < replicas_; ++rank) {
    Reply reply{rank, {.body = arena_reply({generation_, number}, bytes)}};
    for (int owner = 0; owner < replicas_; ++owner) {
      const SharedMemory& memory = created.at(owner);
      reply.message.descriptors.push_back(owner == rank ? duplicate(memory.descriptor())
                                                        : memory.read_only_descriptor());
    }
    replies.push_back(std::move(reply));
  }
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
                                 "generation " + std::to_string(generation_) + " was ended")}};
}

std::vector<ArenaExchange::Reply> ArenaExchange::cancel() {
  is_cancelled_ = true;
  for (SharedMemory& arena : arenas_) signal_of(arena).cancel();
  std::vector<Reply> replies;
  for (const auto& [number, sizes] : wanted_) {
    for (int rank = 0; rank < replicas_; ++rank) {
      if (sizes.at(rank)) replies.push_back(cancelled(rank, number));
    }
  }
  wanted_.clear();
  return replies;
}

}  // namespace holdfast::recovery
