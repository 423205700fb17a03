// Looks for the CUDA back end, and succeeds where it got as far as to open the one that backend.c stands for.

#include <cstdio>
#include <string>

#include "holdfast/holdfast.h"

int main() {
  std::string answer = "no failure";
  try {
    static_cast<void>(holdfast::Replica::alone({.device = "cuda:0"}));
  } catch (const holdfast::Error& failure) {
    answer = failure.what();
  }
  std::printf("devices: %s\n", answer.c_str());
  return answer.find("libholdfast_cuda.so has no symbol") == std::string::npos ? 1 : 0;
}
