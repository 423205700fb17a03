// A memory space's kernels on a device, compared bit for bit with the host: addition, gathering, digests.

#include <limits>
#include <vector>

#include "gpu/support/gpu_test.h"
#include "holdfast/base/digest.h"

namespace holdfast {
namespace {

using Values = std::vector<float>;

constexpr std::size_t kLeafFloats = DigestBuilder::kLeafBytes / sizeof(float);

class DeviceArrays : public GpuTest {
 protected:
  // Arrays of these lengths, each beginning so many floats after an aligned address.
  void expect_host_digest(const std::vector<std::size_t>& lengths, std::size_t padding) {
    std::vector<Values> host;
    std::vector<DeviceArray> device;
    std::vector<std::span<const float>> host_spans;
    std::vector<std::span<const float>> device_spans;
    for (std::size_t i = 0; i < lengths.size(); ++i) host.push_back(random_values(i, lengths[i]));
    for (const Values& array : host) device.push_back(upload(array, padding));
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      host_spans.emplace_back(host[i]);
      device_spans.emplace_back(device[i].span());
    }

    const Digest expected = host_memory().digest_of(host_spans);
    const Digest actual = memory().digest_of(device_spans);

    EXPECT_EQ(actual.hex(), expected.hex())
        << lengths.size() << " arrays, the first of " << lengths.front() << " floats, padding " << padding;
  }
};

TEST_F(DeviceArrays, AreAddedWithTheBitsOfTheHost) {
  for (const std::size_t size : {1, 3, 4, 1023, 1024, 100'003}) {
    for (const std::size_t padding : {0, 1}) {
      const Values summand = random_values(1, size);
      Values expected = random_values(2, size);
      const DeviceArray sum = upload(expected, padding);
      for (std::size_t i = 0; i < size; ++i) expected[i] += summand[i];

      memory().add(upload(summand, padding).span(), sum.span());

      EXPECT_EQ(bit_differences(expected, sum.values()), "") << size << " floats, padding " << padding;
    }
  }
}

TEST_F(DeviceArrays, AreGatheredByRows) {
  const std::vector<std::int64_t> rows = {6, 0, 3, 3, 5};
  for (const std::size_t row_floats : {1, 3, 4, 784, 1023}) {
    for (const std::size_t padding : {0, 1}) {
      const Values from = random_values(1, 7 * row_floats);
      Values expected;
      for (const std::int64_t row : rows) {
        const auto begin = from.begin() + row * static_cast<std::int64_t>(row_floats);
        expected.insert(expected.end(), begin, begin + static_cast<std::int64_t>(row_floats));
      }
      const DeviceArray to = upload(Values(expected.size()), padding);

      memory().gather(upload(from, padding).span(), rows, to.span());

      EXPECT_EQ(bit_differences(expected, to.values()), "") << row_floats << " floats a row, padding " << padding;
    }
  }
}

TEST_F(DeviceArrays, HaveTheDigestOfTheHostForEachLength) {
  for (std::size_t length = 1; length <= 300; ++length) expect_host_digest({length}, length % 3);
}

TEST_F(DeviceArrays, HaveTheDigestOfTheHostAroundLeaves) {
  for (const std::size_t leaves : {1, 2, 40}) {
    for (const std::size_t padding : {0, 1}) {
      expect_host_digest({leaves * kLeafFloats - 1}, padding);
      expect_host_digest({leaves * kLeafFloats}, padding);
      expect_host_digest({leaves * kLeafFloats + 1}, padding);
    }
  }
}

TEST_F(DeviceArrays, HaveTheDigestOfTheHostWhenLeavesLieInSeveral) {
  expect_host_digest({kLeafFloats - 1, 2, kLeafFloats}, 0);
  expect_host_digest({kLeafFloats / 2, kLeafFloats / 2, 17, 16, 15, 2 * kLeafFloats}, 0);
  expect_host_digest({3, 0, 5 * kLeafFloats + 7, 1, 1, 0, 60}, 1);
  expect_host_digest(std::vector<std::size_t>(700, 31), 0);
}

// In an array that begins at an odd float, the 64-bit words of the whole are not aligned.
TEST_F(DeviceArrays, HaveTheDigestOfTheHostWhereverTheyBeginInTheWhole) {
  for (const std::size_t shift : {1, 2, 3}) {
    for (const std::size_t padding : {0, 1}) {
      const std::size_t length = 2 * kLeafFloats + shift;
      expect_host_digest({length, length, length}, padding);
    }
  }
}

// A leaf is read in blocks of 256 floats; each has 16 stripes.
TEST_F(DeviceArrays, HaveTheDigestOfTheHostWhereverALeafIsCut) {
  for (const std::size_t cut : {1, 15, 16, 17, 255, 256, 257, 400, 512}) {
    for (const std::size_t rest : {0, 1, 16, 59, 61, 255, 256, 300}) {
      expect_host_digest({cut, kLeafFloats - cut + rest}, 0);
      expect_host_digest({kLeafFloats - cut, cut + rest}, 1);
    }
  }
  expect_host_digest({250, 3, 1, 1, 5, 270, 1, 700}, 0);
}

TEST_F(DeviceArrays, HaveTheDigestOfNothingWhenThereIsNothing) {
  EXPECT_EQ(memory().digest_of({}).hex(), digest({}).hex());
  const std::vector<std::span<const float>> empty(3);
  EXPECT_EQ(memory().digest_of(empty).hex(), digest({}).hex());
}

TEST_F(DeviceArrays, AreCheckedForValuesThatAreNotFinite) {
  constexpr std::size_t kSize = 5001;
  const Values finite(kSize, std::numeric_limits<float>::max());
  EXPECT_TRUE(memory().is_finite(upload(finite).span()));
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
    for (const std::size_t place : {std::size_t{0}, std::size_t{1023}, std::size_t{4999}, kSize - 1}) {
      for (const std::size_t padding : {0, 1}) {
        Values values = finite;
        values[place] = wrong;
        EXPECT_FALSE(memory().is_finite(upload(values, padding).span())) << wrong << " at " << place;
      }
    }
  }
  EXPECT_TRUE(memory().is_finite(upload(finite).span()));
}

}  // namespace
}  // namespace holdfast
