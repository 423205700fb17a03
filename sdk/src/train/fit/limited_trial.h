#pragma once

// Runs a function in a child process whose address space is limited, and waits for it for a limited time.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

namespace holdfast {

// How much more address space than at its start the child took at most; empty if it did not get enough, or died in the
// attempt. The child is a copy of this process with one thread. `work` may start others. Nothing that it changes
// reaches this process.
//
// Throws Error{deadline_exceeded} if the child has not ended in time; it is killed then. Other errors of `work` are
// thrown here with their code and sentence.
std::optional<std::uint64_t> run_in_limited_child(std::uint64_t bytes, std::chrono::milliseconds timeout,
                                                  const std::function<void()>& work);

}  // namespace holdfast
