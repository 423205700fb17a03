#pragma once

// Tells what this machine trains with: whether CUDA devices can be used, what is missing if they cannot, and on which
// arithmetic of CPUs the bits of a run depend. `holdfast doctor` prints the answers.

#include <string>
#include <vector>

namespace holdfast {

// `devices` is empty if there is a problem.
struct CudaSupport {
  std::string problem{};               // empty: it can
  std::vector<std::string> devices{};  // names, by CUDA's numbers
};

// Loads the CUDA back end and lists the devices that it sees, without a context on any of them. Does
// not throw Error: `problem` says what went wrong.
CudaSupport look_for_cuda();

// What models compute with on CPUs of this machine, with one thread for each shard: the library, the instruction set,
// and the version of our own kernels. Machines with the same text compute the same bits.
std::string describe_cpu_arithmetic();

}  // namespace holdfast
