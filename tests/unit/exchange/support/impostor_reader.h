#pragma once

// A script in place of the helper program. It sends prepared records, as a crafted file could that has taken the helper
// over:
//
//   const ImpostorReader impostor(folder);
//   impostor.send("heads", {{"x", DType::u8, {4}, {}}});
//   impostor.send("elements", {make_numbers("x", DType::u8, {4})});

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "foreign_hdf5/tree_stream.h"
#include "holdfast/format/hdf5_reader.h"
#include "support/temporary_folder.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format::testing {

class ImpostorReader {
 public:
  // Its files lie in the folder: "heads", "elements", and "requests", which has the arguments of each call for
  // elements.
  explicit ImpostorReader(const TemporaryFolder& folder) : folder_(folder.path()) {
    const std::string path = folder_ + "/reader";
    std::ofstream(path) << "#!/bin/sh\ncd '" << folder_ << "'\n"
                        << "if [ $6 = heads ]; then cat heads; else echo \"$@\" >> requests; cat elements; fi\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    set_hdf5_reader_path(path);
  }
  ~ImpostorReader() { set_hdf5_reader_path(""); }
  ImpostorReader(const ImpostorReader&) = delete;
  ImpostorReader& operator=(const ImpostorReader&) = delete;

  // What it answers to a request for "heads" or for "elements".
  void send(const std::string& part, const std::vector<NamedArray>& arrays) const {
    std::vector<std::byte> records;
    TreeEncoder encoder(
        [&](std::span<const std::byte> bytes) { records.insert(records.end(), bytes.begin(), bytes.end()); });
    encoder.add_group({"", {}});
    for (const NamedArray& array : arrays) {
      encoder.add_dataset({array, {}});
      if (!array.bytes.empty()) encoder.add_elements(array.bytes);
    }
    encoder.finish();
    write_bytes(folder_ + "/" + part, records);
  }

 private:
  const std::string folder_;
};

}  // namespace holdfast::format::testing
