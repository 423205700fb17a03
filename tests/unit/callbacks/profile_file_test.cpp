// The bytes of a profile, field by field. JAX's reader of such files reads one in tests/interop/logging_test.py.

#include "callbacks/profile_file.h"

#include <gtest/gtest.h>

#include <string>

#include "callbacks/protobuf_fields.h"

namespace holdfast {

using protobuf::number_field;
using protobuf::text_field;

TEST(ProfileFile, HasALineForEachThreadAndEachNameOnce) {
  using std::chrono::nanoseconds;
  const std::string update = number_field(1, 1) + number_field(2, 5000) + number_field(3, 2000);
  const std::string again = number_field(1, 1) + number_field(2, 9000) + number_field(3, 0);
  const std::string shard = number_field(1, 2) + number_field(2, 1000) + number_field(3, 4000);
  const std::string fit_line =
      number_field(1, 1) + text_field(2, "fit()") + text_field(4, update) + text_field(4, again);
  const std::string worker_line = number_field(1, 3) + text_field(2, "worker 2") + text_field(4, shard);
  const auto name = [](std::uint64_t number, const std::string& text) {
    return text_field(4, number_field(1, number) + text_field(2, number_field(1, number) + text_field(2, text)));
  };

  const std::string space =
      profile_space({{.what = "update", .line = 0, .begin = nanoseconds(5), .duration = nanoseconds(2)},
                     {.what = "update", .line = 0, .begin = nanoseconds(9), .duration = nanoseconds(0)},
                     {.what = "shard 1", .line = 2, .begin = nanoseconds(1), .duration = nanoseconds(4)}});

  EXPECT_EQ(space, text_field(1, text_field(2, "/host:CPU") + text_field(3, fit_line) + text_field(3, worker_line) +
                                     name(2, "shard 1") + name(1, "update")));
}

}  // namespace holdfast
