// main() of every test program. It is GoogleTest's own, but it also holds back the log lines of a test until the test
// fails. So the output shows only tests that failed, each with the lines that led to the failure. With --log each line
// is written at once, for a test that hangs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>

#include <pthread.h>
#include <unistd.h>

#include "holdfast/base/log.h"
#include "support/held_log.h"

namespace {

// Never destroyed: what runs while the program exits may log.
holdfast::HeldLog& held_log() {
  static holdfast::HeldLog& instance = *new holdfast::HeldLog([](std::string_view text) {
    // Nothing can be done about a terminal that is gone.
    static_cast<void>(::write(STDERR_FILENO, text.data(), text.size()) < 0);
  });
  return instance;
}

class ShowsTheLogOfFailures : public testing::EmptyTestEventListener {
  // A test may have put a sink of its own in place, and standard error back.
  void OnTestStart(const testing::TestInfo&) override {
    held_log().begin_test();
    holdfast::set_log_sink([](holdfast::LogLevel level, std::string_view line) { held_log().take(level, line); });
  }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed()) held_log().show();
  }
};

// Parts of a program run at the same time (PARTS in cmake/HoldfastTargets.cmake), and GoogleTest would name their files
// of results alike.
void name_results_of_a_part() {
  const char* name = std::getenv("HOLDFAST_TEST_NAME");
  const std::string output = GTEST_FLAG_GET(output);
  if (name != nullptr && output.ends_with('/')) GTEST_FLAG_SET(output, output + name + ".xml");
}

}  // namespace

int main(int argc, char** argv) {
  name_results_of_a_part();
  testing::InitGoogleMock(&argc, argv);
  const bool shows_all = argc > 1 && std::string_view(argv[1]) == "--log";
  if (!shows_all) {
    testing::UnitTest::GetInstance()->listeners().Append(new ShowsTheLogOfFailures);
    // A broken promise ends the program inside the test. abort() still ends it after the handler.
    std::signal(SIGABRT, [](int) { held_log().show_at_abort(); });
    // Processes that a test forks have handlers of their own.
    ::pthread_atfork(nullptr, nullptr, [] { std::signal(SIGABRT, SIG_DFL); });
  }
  return RUN_ALL_TESTS();
}
