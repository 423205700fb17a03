#pragma once

// Where the time of steps goes. A callback records some steps, and gets what the threads of its process did:
//
//   void on_step_begin(TrainingContext& context) override {
//     if (context.step() == 10) context.begin_profile();
//   }
//   void on_step_end(TrainingContext& context, const Logs&) override {
//     if (context.step() != 12) return;
//     for (const ProfileSpan& span : context.end_profile()) std::cout << span.what << ' ' << span.duration << '\n';
//   }
//
// TensorBoard writes such spans for its Profile tab (TensorBoardOptions::profile_steps).

#include <chrono>
#include <string>

namespace holdfast {

// What a thread did for some time. On a device, parts of shards take as long as it takes to queue their work.
struct ProfileSpan {
  // "reading_data", "callbacks", "forward_and_backward", "sum_over_ranks", "update", ... of the thread of fit(); of a
  // worker "shard 3", and within it operations: "conv2d: convolution", "loss".
  std::string what;
  int line = 0;                         // 0: the thread of fit(); 1, 2, ...: workers that compute shards at once
  std::chrono::nanoseconds begin{};     // since begin_profile()
  std::chrono::nanoseconds duration{};  // of this span
};

}  // namespace holdfast
