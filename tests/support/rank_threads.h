#pragma once

// Ranks as threads. They run the code of the processes, and a test can look inside them. Each rank gets arenas as the
// watchdog would give them to its process.

#include <unistd.h>

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "collective/memory/memory_communicator.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast {

// Makes the n-th communicator of every rank over the same memory. Thread-safe.
class ThreadGroup {
 public:
  explicit ThreadGroup(int ranks) : made_(static_cast<std::size_t>(ranks)) {}

  std::unique_ptr<MemoryCommunicator> connect(const CommunicatorShape& shape) {
    return std::make_unique<MemoryCommunicator>(shape, memory_for(shape));
  }

  // What a communicator of shape.size ranks is made of.
  SharedBlocks::Memory memory_for(const CommunicatorShape& shape) {
    const std::lock_guard lock(mutex_);
    if (is_cancelled_) throw Error(ErrorCode::cancelled, "there is no further generation of these threads");
    const std::size_t number = made_[static_cast<std::size_t>(shape.rank)]++;
    constexpr std::size_t kArenaBytes = SharedBlocks::kArenaBytes;
    std::vector<SharedMemory>& arenas = arenas_[number];
    while (static_cast<int>(arenas.size()) < shape.size)
      arenas.push_back(SharedMemory::create("test-arena", kArenaBytes));
    std::vector<std::shared_ptr<SharedMemory>>& blocks = blocks_[SharedBlocks::blocks_bytes(shape)];
    while (static_cast<int>(blocks.size()) < shape.size)
      blocks.push_back(
          std::make_shared<SharedMemory>(SharedMemory::create("test-blocks", SharedBlocks::blocks_bytes(shape))));
    SharedBlocks::Memory memory;
    for (const SharedMemory& arena : arenas)
      memory.arenas.push_back(SharedMemory::map_read_only(arena.read_only_descriptor(), kArenaBytes));
    const auto rank = static_cast<std::size_t>(shape.rank);
    memory.own_arena = SharedMemory::map_writable(FileDescriptor(::dup(arenas[rank].descriptor())), kArenaBytes);
    memory.own_blocks = blocks[rank];
    // Each rank gets mappings of its own, as a process does. The words that order the accesses are in memory that is
    // mapped several times too, which the thread sanitizer cannot know.
    for (const auto& of_rank : blocks) {
      memory.blocks.push_back(std::make_shared<SharedMemory>(
          SharedMemory::map_read_only(of_rank->read_only_descriptor(), SharedBlocks::blocks_bytes(shape))));
    }
    return memory;
  }

  // Does what the watchdog does when a generation ends.
  void cancel_all() {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    for (auto& [number, arenas] : arenas_) {
      for (SharedMemory& arena : arenas) reinterpret_cast<SignalWord*>(arena.writable().data())->cancel();
    }
  }

 private:
  std::mutex mutex_;
  bool is_cancelled_ = false;
  std::vector<std::size_t> made_;
  std::map<std::size_t, std::vector<SharedMemory>> arenas_;
  // By size: all communicators of a rank write into the same memory, as in a process.
  std::map<std::size_t, std::vector<std::shared_ptr<SharedMemory>>> blocks_;
};

// The meeting of a rank of such threads.
class ThreadMeeting final : public Meeting {
 public:
  explicit ThreadMeeting(ThreadGroup& group) : group_(group) {}

  void prepare(const CommunicatorShape&, int) override {}
  std::unique_ptr<Communicator> connect(const CommunicatorShape& shape) override { return group_.connect(shape); }

 private:
  ThreadGroup& group_;
};

// Runs body(rank) in one thread for each rank. When one throws, the others are cancelled, and the first exception is
// rethrown.
inline void run_ranks(int ranks, ThreadGroup& group, const std::function<void(int rank)>& body) {
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        {
          const std::lock_guard lock(mutex);
          if (!failure) failure = std::current_exception();
        }
        group.cancel_all();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace holdfast
