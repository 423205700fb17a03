// The watch against a library that plays NVML and reports the events that a test asks for. No GPU is needed.

#include "gpu/gpu_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "support/comes_true.h"
#include "support/fake_gpus.h"

namespace holdfast::recovery {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class GpuWatchTest : public testing::Test {
 protected:
  GpuWatch::Handlers handlers() {
    return {.on_begin =
                [this](const std::vector<WatchedGpu>& gpus) {
                  watched_ = gpus;
                  ++begins_;
                },
            .on_event =
                [this](const GpuEvent& event) {
                  static const char* const kinds[] = {"xid", "memory_error", "lost"};
                  said_.push_back(std::string(kinds[static_cast<int>(event.kind)]) + " " + std::to_string(event.xid) +
                                  " of " + std::to_string(event.cuda_number));
                },
            .on_end = [this](const std::string& why) { end_ = why; }};
  }

  // The watch alone does not keep `io_` running; in a run other work does.
  bool comes_true(const std::function<bool()>& condition) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!condition() && std::chrono::steady_clock::now() < until) {
      io_.restart();
      io_.run_for(std::chrono::milliseconds(1));
    }
    return condition();
  }

  bool hears(std::size_t count) {
    return comes_true([this, count] { return said_.size() >= count; });
  }

  boost::asio::io_context io_{1};
  std::vector<WatchedGpu> watched_;
  int begins_ = 0;
  std::vector<std::string> said_;
  std::string end_;
};

TEST_F(GpuWatchTest, ReportsItsDevicesAndTheirEvents) {
  const FakeGpus fake(gpus(3));
  const GpuWatch watch(io_, {0, 2}, handlers());
  ASSERT_TRUE(comes_true([this] { return begins_ == 1; }));
  ASSERT_EQ(watched_.size(), 2U);
  EXPECT_EQ(watched_[1].cuda_number, 2);
  EXPECT_EQ(watched_[1].facts.index, 2);
  EXPECT_TRUE(watched_[1].has_events);

  fake.happen({{"device", 2}, {"xid", 31}});
  fake.happen({{"device", 1}, {"xid", 48}});
  fake.happen({{"device", 0}, {"type", 2}});

  ASSERT_TRUE(hears(2));
  EXPECT_THAT(said_, ElementsAre("xid 31 of 2", "memory_error 0 of 0"));
}

TEST_F(GpuWatchTest, NumbersDevicesAsCudaDoes) {
  const Variable visible("CUDA_VISIBLE_DEVICES", "2,1");
  const FakeGpus fake(gpus(3));
  const GpuWatch watch(io_, {0}, handlers());
  ASSERT_TRUE(comes_true([this] { return begins_ == 1; }));

  fake.happen({{"device", 0}, {"xid", 79}});
  fake.happen({{"device", 2}, {"xid", 43}});

  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said_, ElementsAre("xid 43 of 0"));
}

TEST_F(GpuWatchTest, WatchesTheDeviceOfTheInstanceThatCudaShows) {
  const Variable visible("CUDA_VISIBLE_DEVICES", "MIG-1a");
  nlohmann::json facts = gpus(2);
  facts["devices"][1].update({{"mig_mode", 1}, {"instances", {"MIG-1a"}}});
  const FakeGpus fake(facts);
  const GpuWatch watch(io_, {0}, handlers());
  ASSERT_TRUE(comes_true([this] { return begins_ == 1; }));

  fake.happen({{"device", 1}, {"xid", 79}});

  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said_, ElementsAre("xid 79 of 0"));
}

TEST_F(GpuWatchTest, GoesOnWithTheOthersWhenADeviceIsLost) {
  const FakeGpus fake(gpus(2));
  const GpuWatch watch(io_, {0, 1}, handlers());
  ASSERT_TRUE(comes_true([this] { return begins_ == 1; }));

  fake.lose(1);
  ASSERT_TRUE(hears(1));
  // Events that come while there is no event set are lost, so they are repeated until one is received.
  ASSERT_TRUE(comes_true([&] {
    fake.happen({{"device", 0}, {"xid", 45}});
    return said_.size() > 1;
  }));

  EXPECT_EQ(said_[0], "lost 0 of 1");
  EXPECT_EQ(said_[1], "xid 45 of 0");
  EXPECT_EQ(end_, "");
}

TEST_F(GpuWatchTest, EndsWhenNoDeviceIsLeft) {
  const FakeGpus fake(gpus(1));
  const GpuWatch watch(io_, {0}, handlers());
  ASSERT_TRUE(comes_true([this] { return begins_ == 1; }));

  fake.lose(0);

  ASSERT_TRUE(comes_true([this] { return !end_.empty(); }));
  EXPECT_THAT(said_, ElementsAre("lost 0 of 0"));
  EXPECT_THAT(end_, HasSubstr("none of the run's devices"));
}

TEST_F(GpuWatchTest, NoticesALossWhenTheDriverReportsNoEvents) {
  nlohmann::json facts = gpus(1);
  facts["devices"][0]["event_types"] = 0;
  const FakeGpus fake(facts);
  const GpuWatch watch(io_, {0}, handlers());
  ASSERT_TRUE(comes_true([this] { return begins_ == 1; }));
  EXPECT_FALSE(watched_.at(0).has_events);

  fake.lose(0);

  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said_, ElementsAre("lost 0 of 0"));
}

TEST_F(GpuWatchTest, SaysWhyItWatchesNothing) {
  const Variable nvml("HOLDFAST_NVML", "/nowhere/libnvidia-ml.so.1");
  const GpuWatch watch(io_, {0}, handlers());

  ASSERT_TRUE(comes_true([this] { return !end_.empty(); }));
  EXPECT_THAT(end_, HasSubstr("there is no NVIDIA driver"));
  EXPECT_EQ(begins_, 0);
}

TEST_F(GpuWatchTest, SaysThatAnOldDriverReportsNoEvents) {
  const FakeGpus fake(gpus(1), "libfake_nvml_old.so");
  const GpuWatch watch(io_, {0}, handlers());

  ASSERT_TRUE(comes_true([this] { return !end_.empty(); }));
  EXPECT_THAT(end_, HasSubstr("reports no events"));
}

TEST_F(GpuWatchTest, SaysThatTheDriverHasNoSuchDevice) {
  const FakeGpus fake(gpus(1));
  const GpuWatch watch(io_, {3}, handlers());

  ASSERT_TRUE(comes_true([this] { return !end_.empty(); }));
  EXPECT_THAT(end_, HasSubstr("none of the run's devices"));
}

TEST_F(GpuWatchTest, EndsWhileItsDriverHangs) {
  nlohmann::json facts = gpus(1);
  facts["hangs_in"] = "nvmlEventSetWait_v2";
  const FakeGpus fake(facts);
  {
    const GpuWatch watch(io_, {0}, handlers());
    ASSERT_TRUE(comes_true([this] { return begins_ == 1; }));
  }

  EXPECT_THAT(said_, IsEmpty());
}

}  // namespace
}  // namespace holdfast::recovery
