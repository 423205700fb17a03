#pragma once

// What training queues again and again, as CUDA graphs: one launch for all of it. Work is recorded the second time that
// it is asked for. The first time it is queued as it is: libraries load kernels and find memory when they are first
// used, which a recording does not allow.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/cuda/runtime/cuda_context.h"

namespace holdfast::compute {

class GraphCache {
 public:
  // Enough for a shard of a batch and of an epoch's last batch, in training and in evaluation, with a few slots that
  // gradients may go to. Where more graphs take turns, each would be dropped just before it is asked for again. So a
  // graph that returns after it was dropped doubles the number, up to a limit.
  static constexpr std::size_t kGraphsKept = 16;
  static constexpr std::size_t kMostGraphsKept = 512;

  // The context outlives it.
  GraphCache(CudaContext& context, bool is_wanted) : context_(context), is_wanted_(is_wanted) {}

  // See Backend::repeat().
  void run(std::span<const std::uint64_t> key, std::span<const std::function<void()>> parts,
           const std::function<void(std::size_t part)>& behind);

  // CUDA's sentence, where something could not be recorded: nothing is from there on.
  const std::string& obstacle() const { return obstacle_; }

 private:
  struct ReleaseGraph {
    void operator()(cudaGraph_t graph) const { static_cast<void>(cudaGraphDestroy(graph)); }
    void operator()(cudaGraphExec_t graph) const { static_cast<void>(cudaGraphExecDestroy(graph)); }
  };
  using OwnedGraph = std::unique_ptr<CUgraph_st, ReleaseGraph>;
  using OwnedGraphExec = std::unique_ptr<CUgraphExec_st, ReleaseGraph>;
  struct Entry {
    std::vector<std::uint64_t> key;
    std::vector<OwnedGraphExec> graphs;  // of each part; none until all are recorded
  };

  Entry* find(std::span<const std::uint64_t> key);
  void add(std::span<const std::uint64_t> key);
  void make_room(const std::vector<std::uint64_t>& key);
  void record(Entry& entry, std::span<const std::function<void()>> parts);
  void launch(const OwnedGraphExec& graph);
  OwnedGraph capture(const std::function<void()>& queue);

  CudaContext& context_;
  const bool is_wanted_;
  std::size_t kept_ = kGraphsKept;
  std::list<Entry> entries_;                         // most recent first
  std::list<std::vector<std::uint64_t>> forgotten_;  // keys, most recent first
  std::string obstacle_;
};

}  // namespace holdfast::compute
