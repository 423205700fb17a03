#pragma once

// Keras 3's archives: a ZIP file of the model's configuration, its weights as an HDF5 file, and whatever its layers add
// under assets/.

#include "exchange/keras_content.h"
#include "holdfast/base/file_system.h"

namespace holdfast::format {

// By the first bytes.
bool is_keras_archive(FileSystem& files, const std::string& path);

KerasContent read_keras_archive(FileSystem& files, const std::string& path);

// `content` has the paths of a weights file, and a configuration.
void write_keras_archive(FileSystem& files, const std::string& path, const KerasContent& content);

}  // namespace holdfast::format
