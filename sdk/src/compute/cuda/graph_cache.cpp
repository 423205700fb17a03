#include "compute/cuda/graph_cache.h"

#include <algorithm>
#include <exception>

namespace holdfast::compute {

void GraphCache::run(std::span<const std::uint64_t> key, const std::function<void()>& queue) {
  if (!is_wanted_ || !obstacle_.empty()) return queue();
  Entry* const entry = find(key);
  if (entry == nullptr) {
    queue();
    return add(key);
  }
  if (entry->graph == nullptr) record(*entry, queue);
  if (!obstacle_.empty()) return queue();
  const CudaContext::Turn turn = context_.take_turn();
  check_cuda(cudaGraphLaunch(entry->graph.get(), context_.stream()),
             "cudaGraphLaunch of a step on " + context_.device());
}

GraphCache::Entry* GraphCache::find(std::span<const std::uint64_t> key) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return std::equal(entry.key.begin(), entry.key.end(), key.begin(), key.end());
  });
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return &entries_.front();
}

void GraphCache::add(std::span<const std::uint64_t> key) {
  if (entries_.size() == kGraphsKept) {
    // It may still run.
    context_.wait();
    entries_.pop_back();
  }
  entries_.push_front({.key = {key.begin(), key.end()}, .graph = nullptr});
}

// What cannot be recorded can be queued, with the same bits. Where the device itself has failed, that fails, too.
void GraphCache::record(Entry& entry, const std::function<void()>& queue) {
  const CudaContext::Turn turn = context_.take_turn();
  try {
    const OwnedGraph graph = capture(queue);
    cudaGraphExec_t instance = nullptr;
    check_cuda(cudaGraphInstantiate(&instance, graph.get(), 0), "cudaGraphInstantiate of a step");
    entry.graph.reset(instance);
  } catch (const Error& error) {
    // Nobody waits for the step any more.
    if (error.code() == ErrorCode::cancelled) throw;
    obstacle_ = error.what();
  }
}

// In a turn: what other threads queued meanwhile would be recorded, too.
GraphCache::OwnedGraph GraphCache::capture(const std::function<void()>& queue) {
  check_cuda(cudaStreamBeginCapture(context_.stream(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  std::exception_ptr failure;
  try {
    queue();
  } catch (...) {
    failure = std::current_exception();
  }
  // Also where that failed: the stream takes nothing else before.
  cudaGraph_t graph = nullptr;
  const cudaError_t status = cudaStreamEndCapture(context_.stream(), &graph);
  OwnedGraph captured(graph);
  if (failure) {
    static_cast<void>(cudaGetLastError());
    std::rethrow_exception(failure);
  }
  check_cuda(status, "cudaStreamEndCapture of a step");
  return captured;
}

}  // namespace holdfast::compute
