// Writing and reading an array file of normal numbers in a temporary folder, beside plain writes of the same bytes with
// fsync.

#include <benchmark/benchmark.h>

#include <vector>

#include "holdfast/base/file_system.h"
#include "holdfast/core/random.h"
#include "holdfast/format/array_file.h"
#include "support/program.h"

namespace holdfast {
namespace {

std::vector<float> weights(std::size_t count) {
  std::vector<float> values(count);
  Random random(1, Purpose::synthetic_data, 0, 0);
  for (float& value : values) value = 0.02F * random.normal();
  return values;
}

format::ArrayView view_of(const std::vector<float>& values) {
  return {"model/weights", DType::f32, {values.size()}, std::as_bytes(std::span(values))};
}

void WriteArrayFile(benchmark::State& state) {
  const TemporaryFolder folder;
  const std::vector<float> values = weights(static_cast<std::size_t>(state.range(0)));
  const format::ArrayView view = view_of(values);
  for (auto _ : state) format::write_array_file(posix_file_system(), folder / "file.h5", "{}", std::span(&view, 1));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(view.bytes.size()));
}
BENCHMARK(WriteArrayFile)->Arg(16 << 20)->Unit(benchmark::kMillisecond)->UseRealTime();

void ReadArrayFile(benchmark::State& state) {
  const TemporaryFolder folder;
  const std::vector<float> values = weights(static_cast<std::size_t>(state.range(0)));
  const format::ArrayView view = view_of(values);
  format::write_array_file(posix_file_system(), folder / "file.h5", "{}", std::span(&view, 1));
  for (auto _ : state) {
    const format::ArrayFile file = format::ArrayFile::open(posix_file_system(), folder / "file.h5");
    benchmark::DoNotOptimize(file.read("model/weights"));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(view.bytes.size()));
}
BENCHMARK(ReadArrayFile)->Arg(16 << 20)->Unit(benchmark::kMillisecond)->UseRealTime();

void WritePlain(benchmark::State& state) {
  const TemporaryFolder folder;
  const std::vector<float> values = weights(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    {
      const auto file = posix_file_system().create(folder / "plain");
      file->write_at(0, std::as_bytes(std::span(values)));
      file->sync();
    }
    posix_file_system().remove(folder / "plain");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(values.size() * sizeof(float)));
}
BENCHMARK(WritePlain)->Arg(16 << 20)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace holdfast
