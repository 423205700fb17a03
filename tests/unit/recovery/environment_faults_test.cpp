#include "holdfast/recovery/environment_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace holdfast::recovery {
namespace {

using ::testing::ElementsAre;

TEST(EnvironmentFaults, AreSeparatedBySemicolons) {
  ::setenv(kFaultsVariable, "rank=1,step=2,fault=kill;;rank=0,step=3,fault=hang;", 1);
  const std::vector<std::string> faults = faults_of_environment();
  ::unsetenv(kFaultsVariable);

  EXPECT_THAT(faults, ElementsAre("rank=1,step=2,fault=kill", "rank=0,step=3,fault=hang"));
  EXPECT_THAT(faults_of_environment(), ElementsAre());
}

}  // namespace
}  // namespace holdfast::recovery
