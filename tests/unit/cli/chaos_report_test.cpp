#include "chaos_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/utf8.h"

namespace holdfast::cli {
namespace {

using ::testing::HasSubstr;

// What a program prints may hold any byte, and a build server refuses a file that is not XML.
TEST(ChaosReport, IsXmlWhateverAProgramPrinted) {
  ChaosCase entry;
  entry.result.test.name = "case \xFF";
  entry.result.verdict = resilience::Verdict::other_digest;
  entry.result.sentence = "\x1b[2J <\xC3\x28> \xEF\xBF\xBF caf\xC3\xA9";
  entry.result.test.faults = {"\x80"};

  const std::string text = to_junit_text({.cases = {entry}});

  EXPECT_TRUE(is_utf8(text));
  EXPECT_EQ(text.find('\x1b'), text.npos);
  EXPECT_EQ(text.find("\xEF\xBF\xBF"), text.npos);
  EXPECT_THAT(text, HasSubstr("case \\xff"));
  EXPECT_THAT(text, HasSubstr("\\x1b[2J &lt;\\xc3(&gt; ? caf\xC3\xA9"));
}

}  // namespace
}  // namespace holdfast::cli
