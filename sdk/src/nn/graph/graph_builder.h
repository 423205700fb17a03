#pragma once

// Makes a Graph of values: nodes become operations in the order of nodes_in_order().

#include <unordered_map>

#include "nn/graph/graph.h"

namespace holdfast {

class GraphBuilder {
 public:
  // An array of the caller.
  ArrayId add_array(GraphArray::Source source, std::size_t index, const ValueSpec& spec);
  // A value that stands for an array of the graph.
  Value bind(ArrayId array) const;

  // Appends what `value` needs and what is not there yet. The nodes must be operations and bound ones. Returns the
  // array of `value`.
  ArrayId append(const Value& value);

  // The recomputed segment of the operations that are appended from now on; 0: none.
  void set_segment(std::size_t segment) { segment_ = segment; }

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }

 private:
  void append_node(const std::shared_ptr<const ValueNode>& node);
  ArrayId array_of(const Value& value) const;

  Graph graph_;
  std::size_t segment_ = 0;
  // The output arrays of a node. The keys keep the nodes alive, so that no address is used twice.
  std::unordered_map<std::shared_ptr<const ValueNode>, std::vector<ArrayId>> appended_;
};

}  // namespace holdfast
