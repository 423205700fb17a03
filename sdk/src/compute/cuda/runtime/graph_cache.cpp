// A step has parts, between which gradients become ready. Each part is a graph of its own, followed by an event. One
// graph with events in it would spare some launches, but what a stream waits for then is less clear.
// See docs/decisions/nccl.md.

#include "compute/cuda/runtime/graph_cache.h"

#include <algorithm>
#include <exception>

namespace holdfast::compute {

// All parts are launched as graphs, or all are queued by calling them. Operations may keep something from one part for
// a later one, such as what a product has rounded. A recorded part keeps it without having computed it, so no part may
// be recorded if a later one cannot be.
void GraphCache::run(std::span<const std::uint64_t> key, std::span<const std::function<void()>> parts,
                     const std::function<void(std::size_t part)>& after_part) {
  Entry* const entry = is_wanted_ && obstacle_.empty() ? find(key) : nullptr;
  const bool is_new = entry == nullptr && is_wanted_ && obstacle_.empty();
  // The second time: the first time, libraries load kernels and find memory, which a recording does not allow.
  if (entry != nullptr && entry->graphs.size() != parts.size()) record(*entry, parts);
  const bool is_recorded = entry != nullptr && entry->graphs.size() == parts.size();
  for (std::size_t part = 0; part < parts.size(); ++part) {
    if (is_recorded) {
      launch(entry->graphs[part]);
    } else {
      parts[part]();
    }
    after_part(part);
  }
  if (is_new) add(key);
}

void GraphCache::launch(const OwnedGraphExec& graph) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  check_cuda(cudaGraphLaunch(graph.get(), context_.stream()), "cudaGraphLaunch of a step on " + context_.device());
}

GraphCache::Entry* GraphCache::find(std::span<const std::uint64_t> key) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return std::equal(entry.key.begin(), entry.key.end(), key.begin(), key.end());
  });
  if (found == entries_.end()) return nullptr;
  // The list is in the order of use, so the last entry is the one to drop.
  entries_.splice(entries_.begin(), entries_, found);
  return &entries_.front();
}

void GraphCache::add(std::span<const std::uint64_t> key) {
  Entry entry{.key = {key.begin(), key.end()}, .graphs = {}};
  make_room(entry.key);
  entries_.push_front(std::move(entry));
}

// Does not wait: CUDA frees a graph that still runs when it has ended (cuGraphExecDestroy).
void GraphCache::make_room(const std::vector<std::uint64_t>& key) {
  const auto again = std::find(forgotten_.begin(), forgotten_.end(), key);
  if (again != forgotten_.end()) {
    forgotten_.erase(again);
    // A key that comes back after it was dropped shows that the cache is too small for this training.
    kept_ = std::min(2 * kept_, kMostGraphsKept);
  }
  if (entries_.size() < kept_) return;
  forgotten_.push_front(std::move(entries_.back().key));
  entries_.pop_back();
  if (forgotten_.size() > kMostGraphsKept) forgotten_.pop_back();
}

// Records all parts or none. What cannot be recorded is queued instead, with the same bits. If the device has failed,
// queueing fails too and says so.
void GraphCache::record(Entry& entry, std::span<const std::function<void()>> parts) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  std::vector<OwnedGraphExec> graphs;
  try {
    for (const std::function<void()>& queue : parts) {
      const OwnedGraph graph = capture(queue);
      cudaGraphExec_t instance = nullptr;
      check_cuda(cudaGraphInstantiate(&instance, graph.get(), 0), "cudaGraphInstantiate of a step");
      graphs.emplace_back(instance);
    }
  } catch (const Error& error) {
    // The generation has ended; this is not an obstacle to recording.
    if (error.code() == ErrorCode::cancelled) throw;
    obstacle_ = error.what();
    return;
  }
  entry.graphs = std::move(graphs);
}

// The caller must hold the lock: what other threads queue meanwhile would be recorded too.
GraphCache::OwnedGraph GraphCache::capture(const std::function<void()>& queue) {
  check_cuda(cudaStreamBeginCapture(context_.stream(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  std::exception_ptr failure;
  try {
    queue();
  } catch (...) {
    failure = std::current_exception();
  }
  // Also after a failure, because the stream accepts nothing else before its capture has ended.
  cudaGraph_t graph = nullptr;
  const cudaError_t status = cudaStreamEndCapture(context_.stream(), &graph);
  // Owned before anything throws, or a failed capture would leave a graph.
  OwnedGraph captured(graph);
  if (failure) {
    static_cast<void>(cudaGetLastError());
    std::rethrow_exception(failure);
  }
  check_cuda(status, "cudaStreamEndCapture of a step");
  return captured;
}

}  // namespace holdfast::compute
