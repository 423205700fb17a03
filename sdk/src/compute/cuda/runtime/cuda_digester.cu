// Digests on the device: eight threads hash one leaf of 64 KiB, with one XXH3 accumulator each. Neither the list of
// arrays nor the leaves' digests go through the device's copy engines. These may be busy with a snapshot or with
// samples for longer than the digest takes, so kernels read and write the host's memory.
// See docs/decisions/device-copies.md.

#include <algorithm>
#include <string>

#include "compute/cuda/runtime/cuda_digester.h"
#include "compute/cuda/runtime/cuda_error.h"
#include "compute/cuda/runtime/cuda_launch.cuh"

namespace holdfast::compute {
namespace {

constexpr std::uint32_t kLeafBytes = DigestBuilder::kLeafBytes;
// A block has few leaves, so that even few leaves are spread over the whole device.
constexpr int kThreads = 64;
// With this launch bound ptxas gives a thread enough registers to load all its words of a leaf's block at once. Without
// it, ptxas uses fewer registers and spills (CUDA 13.0, sm_90: 80 instead of 90).
constexpr int kLeastBlocksPerProcessor = 4;
constexpr std::size_t kLeastCapacity = 256;

// The words of a leaf's block that one thread takes: one of each stripe.
struct BlockWords {
  std::uint64_t of_stripe[xxh3::kStripesOfBlock];
};

struct Leaf {
  std::uint64_t begin;  // in bytes, from the start of the first array
  std::uint32_t bytes;  // at least 4
};

// The words of a leaf. Reading a whole block looks for its array only once.
class LeafWords {
 public:
  __device__ LeafWords(const Piece* pieces, std::uint32_t piece_count, const Leaf& leaf)
      : pieces_(pieces), leaf_(leaf), index_(piece_of(pieces, piece_count, leaf.begin)), piece_(pieces[index_]) {}

  __device__ PieceWords any() const { return {pieces_, index_, leaf_.begin}; }
  __device__ std::uint64_t read64(std::uint32_t offset) const { return any().read64(offset); }

  // The word at `offset` in the block's first stripe, and the words at the same place in all other stripes. Words after
  // the leaf's end are zeros. Blocks must be read in order.
  __device__ BlockWords read_block(std::uint32_t block, std::uint32_t offset) const {
    const std::uint64_t begin = leaf_.begin + block;
    // Blocks are read in order, so the search goes on where the last one ended.
    while (begin >= piece_.end) piece_ = pieces_[++index_];
    // If so, the block does not reach beyond the leaf either: a leaf that is cut short ends with the last array.
    const bool is_in_piece = begin + kBlockBytes <= piece_.end;
    if (!is_in_piece) return find_block(offset);
    const std::uint32_t* const words = piece_.words + (begin - piece_.begin + offset - block) / sizeof *words;
    // An array may begin at any float, so words of 8 bytes may not be aligned.
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(words) % sizeof(std::uint64_t) == 0;
    return is_aligned ? read_aligned(words) : read_halves(words);
  }

 private:
  static constexpr std::uint32_t kBlockBytes = xxh3::kStripesOfBlock * xxh3::kStripeBytes;
  static constexpr std::uint32_t kWordsOfStripe = xxh3::kStripeBytes / sizeof(std::uint32_t);

  __device__ static BlockWords read_aligned(const std::uint32_t* words) {
    BlockWords read;
#pragma unroll
    for (std::uint32_t stripe = 0; stripe < xxh3::kStripesOfBlock; ++stripe) {
      read.of_stripe[stripe] = *reinterpret_cast<const std::uint64_t*>(words + stripe * kWordsOfStripe);
    }
    return read;
  }

  __device__ static BlockWords read_halves(const std::uint32_t* words) {
    BlockWords read;
#pragma unroll
    for (std::uint32_t stripe = 0; stripe < xxh3::kStripesOfBlock; ++stripe) {
      const std::uint32_t* const halves = words + stripe * kWordsOfStripe;
      read.of_stripe[stripe] = halves[0] | static_cast<std::uint64_t>(halves[1]) << 32;
    }
    return read;
  }

  __device__ BlockWords find_block(std::uint32_t offset) const {
    const PieceWords words = any();
    // Not unrolled: it runs seldom, and would make up most of the kernel's code.
    std::uint64_t found[xxh3::kStripesOfBlock] = {};
#pragma unroll 1
    for (std::uint32_t stripe = 0; stripe < xxh3::kStripesOfBlock; ++stripe) {
      const std::uint32_t at = offset + stripe * xxh3::kStripeBytes;
      // The last block may end in the middle of a stripe. Nothing after the leaf is read.
      if (at + sizeof(std::uint64_t) <= leaf_.bytes) found[stripe] = words.read64(at);
    }
    BlockWords read;
#pragma unroll
    for (std::uint32_t stripe = 0; stripe < xxh3::kStripesOfBlock; ++stripe) read.of_stripe[stripe] = found[stripe];
    return read;
  }

  const Piece* const pieces_;
  const Leaf leaf_;
  mutable std::uint32_t index_;
  mutable Piece piece_;  // pieces_[index_]
};

// One of eight neighbouring threads, each of which has one accumulator of a leaf. All eight make the same calls.
class LaneOfGroup {
 public:
  __device__ LaneOfGroup() : lane_(threadIdx.x % xxh3::kLanes), accumulator_(xxh3::kFirstAccumulators[lane_]) {
    constexpr unsigned kWarp = 32;
    // Only eight threads of the warp exchange words. The others may have left the kernel already.
    group_ = 0xFFU << (threadIdx.x % kWarp / xxh3::kLanes * xxh3::kLanes);
#pragma unroll
    for (std::uint32_t stripe = 0; stripe < xxh3::kStripesOfBlock; ++stripe) {
      secrets_[stripe] = xxh3::secret_at(8 * (stripe + lane_));
    }
  }

  // The first stripe of a block loads the words of all its stripes, so that these loads overlap.
  __device__ void add(const LeafWords& words, std::uint32_t offset, std::uint32_t stripe_of_block) {
    if (stripe_of_block == 0) block_ = words.read_block(offset, offset + 8 * lane_);
    add_word(block_.of_stripe[stripe_of_block], secrets_[stripe_of_block]);
  }
  __device__ void add_last(const LeafWords& words, std::uint32_t offset) {
    add_word(words.read64(offset + 8 * lane_), xxh3::secret_at(xxh3::kLastStripeSecret + 8 * lane_));
  }
  __device__ void scramble() {
    take_from_neighbour();
    accumulator_ = xxh3::scrambled(accumulator_, xxh3::secret_at(xxh3::kScrambleSecret + 8 * lane_));
  }
  // Gives the same result in all eight threads.
  __device__ Hash128 finish(std::uint32_t bytes) {
    take_from_neighbour();
    std::uint64_t accumulators[xxh3::kLanes];
#pragma unroll
    for (std::uint32_t lane = 0; lane < xxh3::kLanes; ++lane) {
      accumulators[lane] = __shfl_sync(group_, accumulator_, static_cast<int>(lane), xxh3::kLanes);
    }
    return xxh3::finish_long(accumulators, bytes);
  }

 private:
  __device__ void add_word(std::uint64_t word, std::uint64_t secret) {
    accumulator_ += xxh3::lane_product(word, secret);
    given_ += word;
  }
  // Between two calls of scramble() the order of additions is free, so the words of all stripes are exchanged at once.
  __device__ void take_from_neighbour() {
    accumulator_ += __shfl_xor_sync(group_, given_, 1, xxh3::kLanes);
    given_ = 0;
  }

  std::uint32_t lane_;
  unsigned group_;
  std::uint64_t accumulator_;
  std::uint64_t given_ = 0;  // the sum of this thread's words, which its neighbour adds too
  std::uint64_t secrets_[xxh3::kStripesOfBlock];
  BlockWords block_;
};

__device__ Hash128 hash_leaf(const Piece* pieces, std::uint32_t piece_count, const Leaf& leaf) {
  const LeafWords words(pieces, piece_count, leaf);
  // All eight threads compute a short leaf, and the first one stores it. Such a leaf is the last one of all.
  if (leaf.bytes <= xxh3::kLargestShort) return xxh3::short_hash(words.any(), leaf.bytes);
  LaneOfGroup lane;
  return xxh3::long_hash(lane, words, leaf.bytes);
}

// A leaf's digest as one store of 16 bytes. The digests of a warp's leaves are neighbours and cross the link together.
struct alignas(sizeof(Hash128)) LeafHash {
  Hash128 hash;
};

// Eight threads for each leaf.
__global__ void __launch_bounds__(kThreads, kLeastBlocksPerProcessor)
    digest_kernel(const Piece* pieces, std::uint32_t piece_count, std::uint64_t bytes, LeafHash* leaves) {
  const std::uint64_t index = (static_cast<std::uint64_t>(blockIdx.x) * kThreads + threadIdx.x) / xxh3::kLanes;
  const std::uint64_t begin = index * kLeafBytes;
  if (begin >= bytes) return;
  // All leaves have one size, except the last one.
  const std::uint64_t rest = bytes - begin;
  const Leaf leaf = {begin, rest < kLeafBytes ? static_cast<std::uint32_t>(rest) : kLeafBytes};
  const Hash128 hash = hash_leaf(pieces, piece_count, leaf);
  if (threadIdx.x % xxh3::kLanes == 0) leaves[index] = {hash};
}

constexpr unsigned kFetchThreads = 256;

// Copies the list of arrays from the host's memory without the copy engine.
__global__ void __launch_bounds__(kFetchThreads)
    fetch_words_kernel(const std::uint64_t* from, std::uint64_t* to, std::size_t words) {
  const std::size_t index = static_cast<std::size_t>(blockIdx.x) * kFetchThreads + threadIdx.x;
  if (index < words) to[index] = from[index];
}

void fetch_pieces(const Piece* from, Piece* to, std::uint32_t count, cudaStream_t stream) {
  static_assert(sizeof(Piece) % sizeof(std::uint64_t) == 0 && alignof(Piece) == alignof(std::uint64_t));
  const std::size_t words = count * (sizeof(Piece) / sizeof(std::uint64_t));
  launch(fetch_words_kernel, block_count(static_cast<std::int64_t>(words), kFetchThreads), kFetchThreads, stream,
         reinterpret_cast<const std::uint64_t*>(from), reinterpret_cast<std::uint64_t*>(to), words);
  check_launch("fetching the list of arrays of a digest", {{"arrays", count}});
}

std::size_t leaf_count(std::uint64_t bytes) {
  return (bytes + kLeafBytes - 1) / kLeafBytes;
}

std::uint64_t total_bytes(std::span<const std::span<const float>> arrays) {
  std::uint64_t bytes = 0;
  for (const std::span<const float> array : arrays) bytes += array.size_bytes();
  return bytes;
}

// Lists the arrays that are not empty, and returns how many there are.
std::uint32_t write_pieces(std::span<const std::span<const float>> arrays, Piece* pieces) {
  std::uint32_t count = 0;
  std::uint64_t begin = 0;
  for (const std::span<const float> array : arrays) {
    // A piece without bytes would end where it begins, and the search for a word's piece would stop there.
    if (array.empty()) continue;
    // Begin and end count over all arrays, because leaves do not end where arrays do.
    pieces[count++] = {reinterpret_cast<const std::uint32_t*>(array.data()), begin, begin + array.size_bytes()};
    begin += array.size_bytes();
  }
  return count;
}

template <class Element>
void allocate_on_host(Element*& host, std::size_t count) {
  const std::size_t bytes = count * sizeof(Element);
  check_cuda(cudaMallocHost(reinterpret_cast<void**>(&host), bytes),
             "cudaMallocHost of " + std::to_string(bytes) + " bytes for a digest");
}

template <class Element>
void allocate_on_device(Element*& device, std::size_t count) {
  const std::size_t bytes = count * sizeof(Element);
  check_cuda(cudaMalloc(reinterpret_cast<void**>(&device), bytes),
             "cudaMalloc of " + std::to_string(bytes) + " bytes for a digest");
}

}  // namespace

CudaDigester::~CudaDigester() {
  if (lost_device_.is_set()) return;
  // Failures are ignored: nothing can be freed on a lost device.
  for (const Memory& memory : memories_) {
    cudaFreeHost(memory.host_pieces);
    cudaFree(memory.pieces);
    cudaFreeHost(memory.host_leaves);
  }
}

void CudaDigester::reserve(std::size_t pieces, std::size_t leaves) {
  Memory grown;
  if (!memories_.empty()) {
    const Memory& last = memories_.back();
    if (pieces <= last.piece_capacity && leaves <= last.leaf_capacity) return;
    // At least twice as much, so what is kept adds up to no more than what is used.
    grown.piece_capacity = 2 * last.piece_capacity;
    grown.leaf_capacity = 2 * last.leaf_capacity;
  }
  const std::size_t piece_capacity = std::max({pieces, grown.piece_capacity, kLeastCapacity});
  const std::size_t leaf_capacity = std::max({leaves, grown.leaf_capacity, kLeastCapacity});
  // The capacities stay 0 until all allocations have succeeded.
  Memory& memory = memories_.emplace_back();
  allocate_on_host(memory.host_pieces, piece_capacity);
  allocate_on_device(memory.pieces, piece_capacity);
  allocate_on_host(memory.host_leaves, leaf_capacity);
  memory.piece_capacity = piece_capacity;
  memory.leaf_capacity = leaf_capacity;
}

void CudaDigester::queue(std::span<const std::span<const float>> arrays, cudaStream_t stream) {
  // If queueing fails, result() must not read the leaves of an earlier digest.
  bytes_ = 0;
  const std::uint64_t bytes = total_bytes(arrays);
  if (bytes == 0) return;
  const std::size_t leaves = leaf_count(bytes);
  reserve(arrays.size(), leaves);
  const Memory& memory = memories_.back();
  // The stream has read the last list by now, as queue() asks of its caller.
  const std::uint32_t pieces = write_pieces(arrays, memory.host_pieces);
  fetch_pieces(memory.host_pieces, memory.pieces, pieces, stream);
  const unsigned blocks = block_count(static_cast<std::int64_t>(leaves * xxh3::kLanes), kThreads);
  // The kernel writes the leaves' digests to the host itself: 16 bytes for each 64 KiB that it reads. A copy would wait
  // for a snapshot that is on its way.
  launch(digest_kernel, blocks, kThreads, stream, memory.pieces, pieces, bytes,
         reinterpret_cast<LeafHash*>(memory.host_leaves));
  check_launch("digest", {{"arrays", pieces}, {"bytes", static_cast<std::int64_t>(bytes)}});
  bytes_ = bytes;
}

Digest CudaDigester::result() const {
  std::vector<Digest> leaves(leaf_count(bytes_));
  for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i] = digest_of(memories_.back().host_leaves[i]);
  return digest_of_leaves(leaves, bytes_);
}

}  // namespace holdfast::compute
