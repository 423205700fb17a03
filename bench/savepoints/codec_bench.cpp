// Encodes and decodes chunks of 1 MiB on one core. Compares frames of literals with zstd at levels 1 and 3, for
// contents that are typical of savepoints and for others. Also measures the processor time of saving and loading 256
// such chunks, from and to memory that no cache holds. Rates count the bytes of the arrays before compression.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "container/chunk_codec.h"
#include "holdfast/base/digest.h"
#include "holdfast/base/file_system.h"
#include "holdfast/format/array_file.h"
#include "support/temporary_folder.h"

namespace holdfast::format {
namespace {

// The size of the chunks in savepoints.
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

template <typename Value>
std::vector<std::byte> bytes_of(const std::vector<Value>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

template <typename Value>
std::vector<Value> normal_values() {
  // The same numbers in every run, so that ratios of two runs can be compared.
  std::mt19937_64 random(1);
  // Drawn in double precision. A distribution in float leaves patterns in the lowest bits that weights do not have.
  std::normal_distribution<double> draw(0, 0.02);
  std::vector<Value> values(kChunkBytes / sizeof(Value));
  std::generate(values.begin(), values.end(), [&] { return static_cast<Value>(draw(random)); });
  return values;
}

// The upper half of each float: cut off, not rounded.
std::vector<std::byte> normal_bf16() {
  std::mt19937_64 random(1);
  std::normal_distribution<double> draw(0, 0.02);
  std::vector<std::uint16_t> values(kChunkBytes / sizeof(std::uint16_t));
  std::generate(values.begin(), values.end(), [&] {
    const auto value = static_cast<float>(draw(random));
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return static_cast<std::uint16_t>(bits >> 16);
  });
  return bytes_of(values);
}

std::vector<std::byte> random_bytes() {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> values(kChunkBytes / sizeof(std::uint64_t));
  std::generate(values.begin(), values.end(), random);
  return bytes_of(values);
}

struct Content {
  std::string name;
  DType dtype;
  std::size_t element_bytes;
  std::vector<std::byte> bytes;
};

// Zeros and random bytes are the two ends: all is compressed, or nothing.
const std::vector<Content>& contents() {
  static const std::vector<Content> all = {{"f32_normal", DType::f32, 4, bytes_of(normal_values<float>())},
                                           {"bf16_normal", DType::bf16, 2, normal_bf16()},
                                           {"f64_normal", DType::f64, 8, bytes_of(normal_values<double>())},
                                           {"f32_zeros", DType::f32, 4, std::vector<std::byte>(kChunkBytes)},
                                           {"u8_random", DType::u8, 1, random_bytes()}};
  return all;
}

void finish(benchmark::State& state, const Content& content, std::size_t frame_bytes) {
  // Plain bytes, so that codecs of different ratios can be compared.
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(content.bytes.size()));
  state.counters["ratio"] = static_cast<double>(content.bytes.size()) / static_cast<double>(frame_bytes);
}

void encode(benchmark::State& state, const Content& content, std::optional<int> level) {
  ChunkEncoder encoder(level);
  std::size_t frame_bytes = 0;
  for (auto _ : state) frame_bytes = encoder.encode(content.bytes, kChunkBytes, content.element_bytes).size();
  finish(state, content, frame_bytes);
}

// Includes the digests of the elements and of the stored bytes, as in a savepoint's writer.
void encode_for_a_file(benchmark::State& state, const Content& content) {
  ChunkEncoder encoder(std::nullopt);
  std::size_t frame_bytes = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(digest(content.bytes));
    const auto frame = encoder.encode(content.bytes, kChunkBytes, content.element_bytes);
    benchmark::DoNotOptimize(digest(frame));
    frame_bytes = frame.size();
  }
  finish(state, content, frame_bytes);
}

void decode(benchmark::State& state, const Content& content, std::optional<int> level,
            const ChunkDecodeOptions& options) {
  ChunkEncoder encoder(level);
  const auto frame = encoder.encode(content.bytes, kChunkBytes, content.element_bytes);
  ChunkDecoder decoder(options);
  std::vector<std::byte> out(kChunkBytes);
  for (auto _ : state) {
    if (!decoder.decode(frame, kChunkBytes, content.element_bytes, out)) state.SkipWithError("the frame is damaged");
  }
  finish(state, content, frame.size());
}

// 256 MiB, more than any cache holds.
constexpr std::size_t kChunks = 256;

// The same chunk again and again: chunks are encoded by themselves, so repetition does not help.
std::vector<std::byte> repeat(const std::vector<std::byte>& chunk) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < kChunks; ++i) bytes.insert(bytes.end(), chunk.begin(), chunk.end());
  return bytes;
}

void write(const std::string& path, const Content& content, std::span<const std::byte> bytes) {
  const std::vector<ArrayView> arrays = {{"state", content.dtype, {bytes.size() / content.element_bytes}, bytes}};
  write_array_file(posix_file_system(), path, "{}", arrays, {.compression = Compression::fast, .threads = 1});
}

// Measures the time of the whole process, since worker threads do the work and wait for each other.
void save(benchmark::State& state, const Content& content) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes = repeat(content.bytes);
  for (auto _ : state) write(folder.path() + "/state.h5", content, bytes);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
}

void load(benchmark::State& state, const Content& content) {
  const TemporaryFolder folder;
  std::vector<std::byte> bytes = repeat(content.bytes);
  write(folder.path() + "/state.h5", content, bytes);
  // Read back into the memory that it was written from, whose pages are mapped already.
  const std::vector<ArrayFile::Target> targets = {{"state", bytes}};
  for (auto _ : state) {
    ArrayFile::open(posix_file_system(), folder.path() + "/state.h5", {.threads = 1}).read_into(targets);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
}

void add_benchmarks() {
  const std::vector<std::pair<std::string, std::optional<int>>> codecs = {
      {"literals", std::nullopt}, {"zstd1", 1}, {"zstd3", 3}};
  for (const Content& content : contents()) {
    const auto add_whole = [&](const std::string& way, auto&& run) {
      benchmark::RegisterBenchmark((way + "/" + content.name).c_str(), run)
          ->Unit(benchmark::kMillisecond)
          ->MeasureProcessCPUTime();
    };
    benchmark::RegisterBenchmark(("EncodeForAFile/" + content.name).c_str(), [&content](benchmark::State& state) {
      encode_for_a_file(state, content);
    })->Unit(benchmark::kMicrosecond);
    add_whole("Save", [&content](benchmark::State& state) { save(state, content); });
    add_whole("Load", [&content](benchmark::State& state) { load(state, content); });
    for (const auto& [codec, level] : codecs) {
      const std::string name = content.name + "/" + codec;
      const auto add = [&](const std::string& way, auto&&... arguments) {
        benchmark::RegisterBenchmark((way + "/" + name).c_str(), arguments...)->Unit(benchmark::kMicrosecond);
      };
      // A copy, since a lambda cannot capture a structured binding in every compiler.
      const std::optional<int> chosen = level;
      add("Encode", [&content, chosen](benchmark::State& state) { encode(state, content, chosen); });
      add("Decode", [&content, chosen](benchmark::State& state) { decode(state, content, chosen, {}); });
      // As a reader of savepoints does it, which has compared the digest of the stored bytes before.
      add("DecodeVerified",
          [&content, chosen](benchmark::State& state) { decode(state, content, chosen, {.skip_checksum = true}); });
    }
  }
}

}  // namespace
}  // namespace holdfast::format

int main(int argc, char** argv) {
  holdfast::format::add_benchmarks();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
