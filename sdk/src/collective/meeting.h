#pragma once

// Where the ranks of a generation meet: it makes one communicator for each generation. There is one kind of meeting for
// each way in which ranks reach each other, and training knows this interface alone.

#include <cstddef>
#include <memory>

#include "collective/communicator.h"
#include "collective/shard_assignment.h"

namespace holdfast {

// What a communicator is made for.
struct CommunicatorShape {
  int rank = 0;
  int size = 1;
  ShardAssignment assignment{};
  int slots = 1;                // of each rank, the same in every generation
  std::size_t float_count = 0;  // of a block; a multiple of 16
  std::size_t tail_floats = 0;  // of these, the last ones
  std::size_t most_floats = 0;  // what float_count may become later, where it is more; see prepare()
  // Whether it is a second communicator of the generation, next to that of the run's shards, which stays in use.
  bool is_second = false;
};

class Meeting {
 public:
  virtual ~Meeting() = default;

  // Once, before the first generation: makes the memory that reductions of every generation use, and touches the pages
  // of the `used_slots` first slots, so that the first step takes no longer than the others.
  virtual void prepare(const CommunicatorShape& shape, int used_slots) = 0;

  // Once in a generation, and again for each second communicator: all ranks make the same calls in the same order.
  // Blocks until all ranks of the generation are there, by a deadline of its own. Throws GenerationEnded where the
  // generation ends meanwhile.
  virtual std::unique_ptr<Communicator> connect(const CommunicatorShape& shape) = 0;
};

}  // namespace holdfast
