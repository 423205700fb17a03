#pragma once

// A kernel of an application, as its own CUDA source would have it.

namespace holdfast {

// Queues y[i] = x[0] + ... + x[i] for each row of `length` elements, or from the end of the row. `stream` is a
// cudaStream_t. Returns the error of the launch: 0 is success.
int queue_running_sum(const float* x, float* y, long long rows, long long length, bool is_reversed, void* stream);

}  // namespace holdfast
