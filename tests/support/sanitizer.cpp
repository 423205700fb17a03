#include "support/sanitizer.h"

// What the runtime library of a sanitizer brings into a program that is linked with it.
extern "C" void __asan_init() __attribute__((weak));
extern "C" void __tsan_init() __attribute__((weak));

namespace holdfast {

bool runs_under_a_sanitizer() {
  return __asan_init != nullptr || __tsan_init != nullptr;
}

}  // namespace holdfast
