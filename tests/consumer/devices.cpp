// Searches for the CUDA back end. Succeeds if it has opened the library of backend.c, which lacks the needed symbol.

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
