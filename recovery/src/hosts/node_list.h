#pragma once

// The compressed lists in which Slurm names the nodes of a job.
//
//   nodes_of("h[1-3,07],login")  // h1 h2 h3 h07 login

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::recovery {

inline constexpr std::size_t kMostHosts = 512;  // that a run can have

// In the order of the list. Throws Error{invalid_argument} for a text that is not such a list, and for one of more than
// kMostHosts names.
std::vector<std::string> nodes_of(std::string_view list);

}  // namespace holdfast::recovery
