#pragma once

// Hosts that are checked, all on this machine and on one thread: the first on a free port, the others as addresses of
// this machine.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agents/checking_host.h"  // first, for the sake of Asio

#include <gtest/gtest.h>

#include "support/temporary_folder.h"
#include "unit/recovery/support/loopback.h"

namespace holdfast::recovery {

class CheckedHosts : public ::testing::Test {
 protected:
  CheckingOptions options_of(int host) {
    return {.head = {.host = "127.0.0.1", .port = head_ == nullptr ? 0 : head_->port()},
            .hosts = hosts_,
            .host = host,
            .facts = {.version = "0.1.0",
                      .arithmetic = "isa avx2",
                      .replicas = 2,
                      .program = "a1b2",
                      .command = "train",
                      .run_directory = folder_.path()},
            .join_timeout = kSurely,
            .link_timeout = kSurely,
            .on_news = [this, host](const std::string& what) { news_[host] += what + "\n"; }};
  }

  void start_head(const CheckingOptions& options) {
    head_ = std::make_unique<CheckingHead>(loopback_.io, options, secret_of(1), [this](const HostsReport& report) {
      EXPECT_TRUE(reports_.emplace(0, report).second) << "it has ended twice";
    });
  }
  void start_host(int number, const CheckingOptions& options, const Secret& secret = secret_of(1)) {
    checked_[number] = std::make_unique<CheckingHost>(
        loopback_.io, options, secret, [this, number](const HostsReport& report) { reports_[number] = report; });
  }

  HostsReport report_of(int number) {
    loopback_.run_until([&] { return reports_.contains(number); }, "the report");
    return reports_.at(number);
  }

  // What host 0 has found; null where it has not looked at that.
  static std::optional<HostCheck> check_of(const HostsReport& report, int host, const std::string& what) {
    for (const HostCheck& check : report.checks) {
      if (check.host == host && check.what == what) return check;
    }
    return std::nullopt;
  }

  int hosts_ = 2;
  const TemporaryFolder folder_;
  Loopback loopback_;
  std::map<int, std::string> news_;  // by host
  std::map<int, HostsReport> reports_;
  std::unique_ptr<CheckingHead> head_;
  std::map<int, std::unique_ptr<CheckingHost>> checked_;
};

}  // namespace holdfast::recovery
