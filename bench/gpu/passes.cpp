// Times single passes over a model's state on a device: Adam, copies within the device, and copies between it and the
// host. For bench/gpu/runs.py; prints JSON.
//
//   gpu_passes [--floats 41157104] [--seconds 0.2]

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/core/random.h"

namespace {

using namespace holdfast;
using Clock = std::chrono::steady_clock;

constexpr int kStateArrays = 3;  // parameters and Adam's two slots

struct Arguments {
  std::size_t floats = 41'157'104;
  double seconds = 0.2;  // the time for which each pass is repeated
};

class Passes {
 public:
  explicit Passes(const Arguments& arguments)
      : arguments_(arguments),
        backend_(compute::make_cuda_backend("cuda:0", Precision::f32)),
        memory_(backend_->memory()),
        gradients_(memory_.allocate(arguments.floats)),
        state_(memory_.allocate(state_floats())),
        copy_(memory_.allocate(state_floats())) {
    fill_with_noise();
  }

  nlohmann::json measure() {
    const double state_bytes = static_cast<double>(state_floats() * sizeof(float));
    // Adam reads four floats of an element and writes three.
    const double adam_bytes = 28.0 * static_cast<double>(arguments_.floats);
    const double copy_seconds = seconds_of([this] { memory_.copy(state(), copy()); });
    nlohmann::json measured = {{"floats", arguments_.floats},
                               {"device", memory_.device()},
                               {"adam_gb_s", adam_bytes / seconds_of([this] { update(); }) / 1e9},
                               {"state_copy_seconds", copy_seconds},
                               {"copy_gb_s", 2 * state_bytes / copy_seconds / 1e9}};
    // Shared memory, as snapshots use it.
    SharedMemory host = SharedMemory::create("gpu-passes", state_floats() * sizeof(float));
    const std::span<std::byte> bytes = host.writable();
    const std::span<float> floats(reinterpret_cast<float*>(bytes.data()), state_floats());
    const auto measure_link = [&](const std::string& suffix) {
      const double there = seconds_of([&] { memory_.copy_to_host(state(), floats); });
      const double back = seconds_of([&] { memory_.copy_from_host(floats, copy()); });
      measured["to_host" + suffix + "_gb_s"] = state_bytes / there / 1e9;
      measured["from_host" + suffix + "_gb_s"] = state_bytes / back / 1e9;
    };
    // Both are measured, since the first snapshot of a run is sent unpinned.
    measure_link("_unpinned");
    memory_.pin(bytes);
    measure_link("");
    memory_.unpin(bytes);
    return measured;
  }

 private:
  std::size_t state_floats() const { return kStateArrays * arguments_.floats; }
  std::span<float> state() const { return {state_.get(), state_floats()}; }
  std::span<float> copy() const { return {copy_.get(), state_floats()}; }

  // Values from 0 to 1, since one of the slots is a mean of squares. Zeros and values that underflow would take slower
  // paths through Adam than those of a training.
  void fill_with_noise() {
    Random random(1, Purpose::synthetic_data, 0, 0);
    std::vector<float> noise(arguments_.floats);
    for (float& value : noise) value = random.uniform();
    memory_.copy_from_host(noise, {gradients_.get(), noise.size()});
    for (int i = 0; i < kStateArrays; ++i) {
      memory_.copy_from_host(noise, state().subspan(i * noise.size(), noise.size()));
    }
  }

  void update() {
    const compute::AdamStep step{.beta_1_rest = 0.1F, .beta_2_rest = 0.001F, .rate = 1e-4F, .epsilon = 1e-7F};
    const std::size_t floats = arguments_.floats;
    backend_->device_kernels()->adam(step, floats, state_.get(), gradients_.get(), state_.get() + floats,
                                     state_.get() + 2 * floats);
  }

  // The seconds of one call, over as many calls as take the time of a repetition. All calls are queued before a wait.
  double seconds_of(const std::function<void()>& act) {
    constexpr int kWarm = 3;
    for (int i = 0; i < kWarm - 1; ++i) act();
    memory_.wait();
    const double once = time([&] { act(); });
    // At least three, so that one slow call weighs less.
    const int repeats = static_cast<int>(std::min(10'000.0, std::max(3.0, arguments_.seconds / once)));
    return time([&] {
             for (int i = 0; i < repeats; ++i) act();
           }) /
           repeats;
  }

  double time(const std::function<void()>& act) {
    const auto begin = Clock::now();
    act();
    memory_.wait();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  const Arguments arguments_;
  const std::unique_ptr<compute::Backend> backend_;
  MemorySpace& memory_;
  const std::shared_ptr<float[]> gradients_;
  const std::shared_ptr<float[]> state_;
  const std::shared_ptr<float[]> copy_;
};

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Times passes over a model's state; for bench/gpu/runs.py.");
  app.add_option("--floats", arguments.floats, "number of floats of an array of the state")
      ->check(CLI::Range(16, 1 << 30));
  app.add_option("--seconds", arguments.seconds, "time for which each pass is repeated");
  CLI11_PARSE(app, argc, argv);
  constexpr int kNoGpu = 77;
  try {
    std::puts(Passes(arguments).measure().dump().c_str());
    return 0;
  } catch (const Error& failure) {
    std::fprintf(stderr, "gpu_passes: %s\n", failure.what());
    // A device that Holdfast cannot use is `unavailable`, too. Either way there is nothing to measure, and runs.py
    // skips.
    return failure.code() == ErrorCode::unavailable ? kNoGpu : 1;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "gpu_passes: %s\n", failure.what());
    return 1;
  }
}
