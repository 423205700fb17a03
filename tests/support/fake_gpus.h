#pragma once

// GPUs that do not exist: the file from which the fake NVML (support/fake_nvml) answers, and the environment that makes
// this process and its programs use it.

#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "support/folders.h"
#include "support/temporary_folder.h"

namespace holdfast {

// A GPU without any problem.
inline nlohmann::json a_gpu(int number) {
  const std::string digit = std::to_string(number);
  return {{"name", "NVIDIA H200"},
          {"uuid", "GPU-0000000" + digit + "-aaaa-bbbb-cccc-dddddddddddd"},
          {"bus_id", "00000000:" + digit + "B:00.0"},
          {"compute_capability", {9, 0}},
          {"memory", {{"total", 150754820096ULL}, {"used", 629145600ULL}}},
          {"temperature", 34},
          {"milliwatts", 76500},
          {"milliwatts_limit", 700000},
          {"clocks_event_reasons", 1},
          {"ecc_mode", 1},
          {"uncorrected_errors", 0},
          {"uncorrected_errors_ever", 0},
          {"remapped_rows", nlohmann::json::object()},
          {"link_generation", 5},
          {"max_link_generation", 5},
          {"link_width", 16},
          {"max_link_width", 16},
          {"utilization", 0},
          {"mig_mode", 0},
          {"event_types", 0xf}};
}

inline nlohmann::json gpus(int count) {
  nlohmann::json facts{{"driver_version", "580.65.06"},
                       {"nvml_version", "13.580.65.06"},
                       {"cuda_version", 13000},
                       {"peers", 0},
                       {"devices", nlohmann::json::array()}};
  for (int i = 0; i < count; ++i) facts["devices"].push_back(a_gpu(i));
  return facts;
}

// Sets an environment variable of this process as long as the object exists. Programs that it starts inherit it.
class Variable {
 public:
  Variable(const std::string& name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name.c_str())) before_ = before;
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Variable() {
    if (before_) {
      ::setenv(name_.c_str(), before_->c_str(), 1);
    } else {
      ::unsetenv(name_.c_str());
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const std::string name_;
  std::optional<std::string> before_;
};

// The GPUs exist as long as the object.
class FakeGpus {
 public:
  explicit FakeGpus(nlohmann::json facts, const std::string& library = "libfake_nvml.so") : library_(library) {
    facts["events"] = events();
    for (std::size_t i = 0; i < facts["devices"].size(); ++i) facts["devices"][i]["lost_when"] = lost_when(i);
    std::ofstream(folder_ / "facts.json") << facts;
    std::ofstream(events()).flush();
  }

  // The file to which a test appends events, such as the line {"device": 1, "xid": 79}.
  std::string events() const { return folder_ / "events"; }
  void happen(const nlohmann::json& event) const { std::ofstream(events(), std::ios::app) << event << std::endl; }
  void lose(std::size_t device) const { std::ofstream(lost_when(device)).flush(); }

 private:
  std::string lost_when(std::size_t device) const { return folder_ / ("lost-" + std::to_string(device)); }

  const TemporaryFolder folder_;
  const std::string library_;
  const Variable facts_{"HOLDFAST_FAKE_NVML", folder_ / "facts.json"};
  const Variable nvml_{"HOLDFAST_NVML", program_folder() + "/" + library_};
};

}  // namespace holdfast
