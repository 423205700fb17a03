// The memory space of a real device; unit/compute/cuda/memory tests it on a pretended runtime.

#include "holdfast/core/memory_space.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "data/batches/batch_loader.h"
#include "data/batches/pinned_samples.h"
#include "gpu/layers/support/layer_test.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/data/dataset.h"

namespace holdfast {
namespace {

// Sizes below, at and above that of a staging buffer, and more than the whole ring holds.
const std::vector<std::int64_t> kArraySizes = {1, 1000, 1 << 20, (1 << 20) + 1, (5 << 20) + 7};

class DeviceMemory : public LayerTest {
 protected:
  // Pins memory. Returns the log's warning if a sandbox (gVisor) refuses that. Training then copies through other
  // memory, and there is nothing to see for tests of pinned memory.
  std::string pin(Floats& values) {
    std::string obstacle;
    set_log_sink([&](LogLevel, std::string_view line) { obstacle += line; });
    memory().pin(std::as_writable_bytes(std::span(values)));
    set_log_sink({});
    return obstacle;
  }
};

TEST_F(DeviceMemory, HoldsZerosAtFirst) {
  const auto array = memory().allocate(1000);
  Floats content(1000, 1.0F);

  memory().copy_to_host({array.get(), 1000}, content);

  EXPECT_EQ(content, Floats(1000, 0.0F));
}

TEST_F(DeviceMemory, ReadsBackWhatWasWritten) {
  for (const std::int64_t size : kArraySizes) {
    const Floats content = values(1, size);
    EXPECT_EQ(bit_differences(content, upload(content).values()), "") << size;
  }
}

TEST_F(DeviceMemory, CopiesFromMemoryThatChangesAtOnce) {
  for (const std::int64_t size : kArraySizes) {
    const Floats content = values(1, size);
    Floats changing = content;
    const DeviceArray array = output(size);

    memory().copy_from_host(changing, array.span());
    std::fill(changing.begin(), changing.end(), 0.0F);

    EXPECT_EQ(bit_differences(content, array.values()), "") << size;
  }
}

TEST_F(DeviceMemory, CopiesPinnedMemory) {
  const Floats content = values(1, 3 << 20);
  Floats pinned = content;
  const DeviceArray array = output(3 << 20);
  memory().pin(std::as_writable_bytes(std::span(pinned)));

  memory().copy_from_host(pinned, array.span());
  std::fill(pinned.begin(), pinned.end(), 0.0F);
  memory().copy_to_host(array.span(), pinned);
  memory().unpin(std::as_writable_bytes(std::span(pinned)));

  EXPECT_EQ(bit_differences(content, pinned), "");
}

TEST_F(DeviceMemory, IsFedRowsInRunsAndScatteredOnesWhileItComputes) {
  constexpr std::int64_t kRowFloats = 784, kRows = 4000, kTaken = 1000;
  Floats samples = values(1, kRows * kRowFloats);
  const std::string obstacle = pin(samples);
  const auto feed = memory().feed(samples, kRowFloats);
  if (!obstacle.empty()) GTEST_SKIP() << obstacle;
  ASSERT_NE(feed, nullptr);
  const auto rows_of = [](std::int64_t step) {
    std::vector<std::int64_t> rows(kTaken);
    for (std::int64_t i = 0; i < kTaken; ++i)
      rows[static_cast<std::size_t>(i)] = (step * 100 + i * (step % 2 == 0 ? 1 : 7)) % kRows;
    return rows;
  };

  feed->begin(rows_of(0));
  for (std::int64_t step = 0; step < 6; ++step) {
    const std::span<const float> taken = feed->take();
    feed->begin(rows_of(step + 1));
    Floats expected(taken.size());
    host_memory().gather(samples, rows_of(step), expected);
    Floats actual(taken.size());
    memory().copy_to_host(taken, actual);
    EXPECT_EQ(bit_differences(expected, actual), "") << "step " << step;
  }
  static_cast<void>(feed->take());
  memory().wait();
  memory().unpin(std::as_writable_bytes(std::span(samples)));
}

TEST_F(DeviceMemory, TakesBatchesThatWereLoadedAhead) {
  Floats any = values(1, 10'000);
  if (const std::string obstacle = pin(any); !obstacle.empty()) GTEST_SKIP() << obstacle;
  memory().unpin(std::as_writable_bytes(std::span(any)));
  const auto add_noise = [](Sample sample, Random& random) { sample.features[0] += random.uniform(); };
  Tensor features(Shape{1'000, 300});
  Tensor targets(Shape{1'000});
  std::ranges::copy(values(1, 300'000), features.values().begin());
  std::ranges::copy(values(2, 1'000), targets.values().begin());
  const Dataset dataset =
      from_tensors(std::move(features), std::move(targets)).shuffle().map(add_noise, "noise").batch(64).prefetch(3);
  const auto stage = [&](const HostRows& rows) { return feeds_of_rows(dataset, rows, memory()); };
  BatchLoader on_host(dataset, 7, 1, 0, 1, 0, 0, 2);
  BatchLoader sent(dataset, 7, 1, 0, 1, 0, 0, 2, {.stage = stage});

  while (const std::optional<Batch> expected = on_host.next()) {
    const std::optional<Batch> actual = sent.next();

    ASSERT_TRUE(actual.has_value() && actual->is_on_device);
    const ShardSlice &host = expected->shards[0], &device = actual->shards[0];
    Floats taken(device.features.size()), labels(device.targets.size());
    memory().copy_to_host(device.features, taken);
    memory().copy_to_host(device.targets, labels);
    EXPECT_EQ(bit_differences(Floats(host.features.begin(), host.features.end()), taken), "");
    EXPECT_EQ(bit_differences(Floats(host.targets.begin(), host.targets.end()), labels), "");
  }
  EXPECT_FALSE(sent.next().has_value());
}

TEST_F(DeviceMemory, DoesInOrderWhatItIsAskedFor) {
  const Floats first = values(1, 2 << 20), second = values(2, 2 << 20);
  const DeviceArray a = upload(first), b = upload(second);

  memory().add(a.span(), b.span());
  memory().copy(b.span(), a.span());
  memory().fill_zero(b.span());

  Floats sum(first.size());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = second[i] + first[i];
  EXPECT_EQ(bit_differences(sum, a.values()), "");
  EXPECT_EQ(bit_differences(Floats(first.size(), 0.0F), b.values()), "");
}

TEST_F(DeviceMemory, HasTheHostsDigests) {
  const Floats first = values(1, 70'001), second = values(2, 3);
  const DeviceArray a = upload(first), b = upload(second);
  const std::vector<std::span<const float>> on_host = {first, second}, on_device = {a.span(), b.span()};

  EXPECT_EQ(memory().digest_of(on_device), host_memory().digest_of(on_host));
}

TEST_F(DeviceMemory, FindsWhatIsNotFinite) {
  Floats content = values(1, 100'000);
  EXPECT_TRUE(memory().is_finite(upload(content).span()));

  content[77'777] = std::numeric_limits<float>::infinity();

  EXPECT_FALSE(memory().is_finite(upload(content).span()));
  EXPECT_TRUE(memory().is_finite(upload(Floats(10)).span())) << "once and for all";
}

// Large enough that the copies to the host still run when the arrays change.
TEST_F(DeviceMemory, HoldsArraysThatChangeMeanwhile) {
  const Floats first = values(1, 32 << 20), second = values(2, 1001);
  const DeviceArray a = upload(first), b = upload(second);
  const std::vector<std::span<const float>> on_host = {first, second}, on_device = {a.span(), b.span()};

  for (const bool is_pinned : {false, true}) {
    memory().copy_from_host(first, a.span());
    memory().copy_from_host(second, b.span());
    Floats large(first.size()), small(second.size());
    if (is_pinned) memory().pin(std::as_writable_bytes(std::span(large)));

    const std::unique_ptr<HeldArrays> held = memory().hold(on_device);
    held->begin_copy(std::vector<std::span<float>>{large, small});
    for (int i = 0; i < 20; ++i) memory().add(a.span(), a.span());
    memory().fill_zero(b.span());
    held->finish_copy();

    EXPECT_EQ(held->obstacle(), "");
    EXPECT_EQ(bit_differences(first, large), "") << is_pinned;
    EXPECT_EQ(bit_differences(second, small), "") << is_pinned;
    EXPECT_EQ(held->digest(), host_memory().digest_of(on_host));
    if (is_pinned) memory().unpin(std::as_writable_bytes(std::span(large)));
  }
}

TEST_F(DeviceMemory, SaysHowMuchIsMissing) {
  constexpr std::size_t kTooMany = std::size_t{1} << 50;

  try {
    static_cast<void>(memory().allocate(kTooMany));
    FAIL() << "there was enough";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_NE(std::string(error.what()).find("are missing"), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(static_cast<void>(memory().allocate(1000)));
}

TEST_F(DeviceMemory, IsOneForAllBackEndsOfADevice) {
  const auto other = compute::make_cuda_backend("cuda:0");

  EXPECT_EQ(&other->memory(), &memory());
  EXPECT_EQ(other->description(), backend().description());
}

}  // namespace
}  // namespace holdfast
