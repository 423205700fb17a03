#pragma once

namespace holdfast {

// Whether this program runs under the address or the thread sanitizer. It is asked at run time, because sources of
// tests are compiled in the same way for a release build and for the address sanitizer: the compiler cache serves one
// from the other (docs/decisions/building.md).
bool runs_under_a_sanitizer();

}  // namespace holdfast
