#pragma once

// CUDA graphs of the work that training queues in each step, so that one launch replaces many. Work is recorded when it
// is asked for the second time. The first time it is queued kernel by kernel, because libraries load kernels and
// allocate memory when they are first used, which a recording does not allow. See docs/decisions/devices.md.

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
  // Enough for a shard of a batch and of an epoch's last batch, in training and in evaluation, with a few slots for
  // gradients. If a training needs more graphs in a cycle, each would be dropped just before it is needed again. So a
  // graph that is asked for after it was dropped doubles the number, up to a limit.
  static constexpr std::size_t kGraphsKept = 16;
  static constexpr std::size_t kMostGraphsKept = 512;

  // `context` must outlive this object. If not `is_wanted`, nothing is recorded.
  GraphCache(CudaContext& context, bool is_wanted) : context_(context), is_wanted_(is_wanted) {}

  // See Backend::repeat().
  void run(std::span<const std::uint64_t> key, std::span<const std::function<void()>> parts,
           const std::function<void(std::size_t part)>& after_part);

  // CUDA's error, if something could not be recorded; else empty. After that nothing is recorded any more.
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
    std::vector<OwnedGraphExec> graphs;  // one for each part; empty until all are recorded
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
  std::list<std::vector<std::uint64_t>> forgotten_;  // keys of dropped entries, most recent first
  std::string obstacle_;
};

}  // namespace holdfast::compute
