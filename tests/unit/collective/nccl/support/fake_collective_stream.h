#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "collective/nccl/collective_stream.h"
#include "collective/nccl/ordered_sum_program.h"
#include "holdfast/base/error.h"
#include "support/fake_nccl/thread_stream.h"

namespace holdfast {

// A device in host memory, with the kernels of a real one. A thread runs them.
class FakeCollectiveStream final : public CollectiveStream {
 public:
  std::string device() const override { return "fake:0"; }
  std::string identity() const override { return "fake"; }
  void* handle() override { return static_cast<FakeStream*>(&stream_); }
  void make_current() override {}
  void follow_training() override { ++followed_; }
  void mark_training(std::size_t mark) override {
    const std::lock_guard lock(marks_mutex_);
    training_marks_[mark] = training_ == nullptr ? done() : training_->mark();
  }
  void follow_training(std::size_t mark) override {
    const std::lock_guard lock(marks_mutex_);
    followed_mark_ = training_marks_.at(mark);
    stream_.enqueue([reached = followed_mark_] { reached.wait(); });
  }
  bool has_training_passed() override {
    const std::lock_guard lock(marks_mutex_);
    return !followed_mark_.valid() || followed_mark_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  // Queues work of training, which otherwise happens at once.
  class Training {
   public:
    void enqueue(std::function<void()> work) { stream_.enqueue(std::move(work)); }
    std::shared_future<void> mark() {
      const auto promise = std::make_shared<std::promise<void>>();
      stream_.enqueue([promise] { promise->set_value(); });
      return promise->get_future().share();
    }

   private:
    ThreadStream stream_;
  };
  // `stream` must outlive this object.
  void set_training(Training& training) { training_ = &training; }

  void begin_sums() override {
    stream_.enqueue([this] { were_finite_ = true; });
  }
  void add_in_order(const OrderedSum& sum) override {
    stream_.enqueue([this, program = ordered_sum_program(sum.program, sum.leaves), floats = sum.floats, to = sum.sum] {
      for (std::size_t i = 0; i < floats; ++i) {
        const float value = ordered_sum_at<16, 1>(program, i).values[0];
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        if (!is_finite_bits(bits)) were_finite_ = false;
        if (to != nullptr) to[i] = value;
      }
    });
  }

  void mark() override {
    const int number = ++marks_;
    stream_.enqueue([this, number] { passed_ = number; });
  }
  bool has_passed_mark() override {
    if (is_lost_) throw Error(ErrorCode::unavailable, "cudaEventQuery failed: an illegal memory access");
    return passed_ == marks_;
  }
  bool were_finite() const override { return were_finite_; }
  void mark_device_lost() noexcept override { is_device_lost_ = true; }

  // From now on every poll of the device fails.
  void lose() { is_lost_ = true; }
  bool is_device_lost() const { return is_device_lost_; }
  int followed() const { return followed_; }

 private:
  static std::shared_future<void> done() {
    std::promise<void> promise;
    promise.set_value();
    return promise.get_future().share();
  }

  Training* training_ = nullptr;
  std::mutex marks_mutex_;
  std::map<std::size_t, std::shared_future<void>> training_marks_;  // guarded by marks_mutex_
  std::shared_future<void> followed_mark_;                          // guarded by marks_mutex_
  std::atomic<bool> is_lost_ = false;
  std::atomic<bool> is_device_lost_ = false;
  std::atomic<bool> were_finite_ = true;
  std::atomic<int> passed_ = 0;
  std::atomic<int> marks_ = 0;
  std::atomic<int> followed_ = 0;
  ThreadStream stream_;  // last, because its work uses the other members
};

}  // namespace holdfast
