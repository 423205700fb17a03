// Folders of pictures come from outside, as archives that somebody packed. A link in one may lead to any file of the
// machine, so links are followed only to files within the folder, once, while it is listed. Paths are resolved then,
// and a file that has become a link since is refused. docs/decisions/pictures.md

#include "data/pictures/picture_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "holdfast/base/digest.h"
#include "holdfast/base/error.h"
#include "holdfast/base/regular_file.h"
#include "holdfast/base/shown_text.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

// Folders within folders; a file system that is damaged may have a loop.
constexpr int kMostDepth = 30;

struct FolderEntry {
  std::string name;
  bool is_folder = false;
  bool is_link = false;
};

// All entries but hidden ones, sorted by bytes.
std::vector<FolderEntry> entries_of(const fs::path& folder) {
  std::error_code failure;
  std::vector<FolderEntry> entries;
  // With error codes throughout: an exception of the standard library would not say what was tried.
  fs::directory_iterator iterator(folder, failure);
  while (!failure && iterator != fs::directory_iterator()) {
    std::string name = iterator->path().filename().string();
    std::error_code ignored;  // an entry that cannot be looked at fails when it is opened
    if (name[0] != '.') {
      entries.push_back({.name = std::move(name),
                         // Follows links, so a link to a folder is both.
                         .is_folder = iterator->is_directory(ignored),
                         .is_link = iterator->is_symlink(ignored)});
    }
    iterator.increment(failure);
  }
  if (failure) {
    throw system_error(failure.value(),
                       fmt::format("cannot list the folder of pictures {}", quoted_path(folder.string())));
  }
  // By bytes, since the order of a folder differs between file systems, and numbers of samples follow from it.
  std::ranges::sort(entries, {}, &FolderEntry::name);
  return entries;
}

// ".jpg" of "A.JPG".
std::string ending_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  std::string ending(dot == std::string_view::npos ? "" : name.substr(dot));
  for (char& letter : ending) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return ending;
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> texts) {
  return std::ranges::find(texts, text) != texts.end();
}

class PictureLister {
 public:
  PictureLister(const std::string& folder, const PictureOptions& options) : options_(options) {
    std::error_code failure;
    // Resolved once. The folder itself may be reached by links: the user named it.
    root_ = fs::canonical(folder, failure);
    if (failure) {
      const Error error =
          system_error(failure.value(), fmt::format("cannot open the folder of pictures {}", quoted_path(folder)));
      throw Error(
          error.code(),
          fmt::format("{}; give the folder that holds a folder of pictures for each class, by a path that counts "
                      "from the current folder if it is relative",
                      error.what()));
    }
  }

  PictureFolder list() && {
    result_.classes = options_.classes.empty() ? class_names() : options_.classes;
    check_classes();
    for (const std::string& name : result_.classes) {
      const std::size_t before = result_.files.size();
      add_folder(root_ / name, name, 0);
      // Labels are places in the list of classes, also where the options give another order than the folder.
      ++label_;
      // The model would have an output for an empty class, which no sample trains.
      if (result_.files.size() == before) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the folder {} of class {} holds no picture; add some, or name the other classes in "
                                "PictureOptions::classes",
                                quoted_path((root_ / name).string()), quoted_text(name)));
      }
    }
    result_.digest = digest_.finish().hex();
    return std::move(result_);
  }

  std::vector<std::string> class_names() const {
    std::vector<std::string> names;
    for (const FolderEntry& entry : entries_of(root_)) {
      // Files next to the classes are passed over, such as a license.
      if (entry.is_folder && !entry.is_link) names.push_back(entry.name);
      if (entry.is_folder && entry.is_link) refuse_folder_link(root_ / entry.name);
    }
    if (names.empty()) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format(
              "the folder {} holds no folder; look at the path, or move the pictures of each class into a folder "
              "with its name",
              quoted_path(root_.string())));
    }
    return names;
  }

 private:
  void check_classes() const {
    std::set<std::string> seen;
    for (const std::string& name : result_.classes) {
      // One part of a path and not a way out of the folder.
      const bool is_name = !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
      std::error_code failure;
      const fs::file_status status = fs::symlink_status(root_ / name, failure);
      if (is_name && fs::is_symlink(status)) refuse_folder_link(root_ / name);
      if (!is_name || !fs::is_directory(status)) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("{} has no folder {} for that class", quoted_path(root_.string()), quoted_text(name)));
      }
      if (!seen.insert(name).second) {
        throw Error(ErrorCode::invalid_argument, fmt::format("class {} is named twice", quoted_text(name)));
      }
    }
  }

  // `name` is the path below the root, which is the same wherever the folder lies.
  void add_folder(const fs::path& path, const std::string& name, int depth) {
    if (depth > kMostDepth) {
      throw Error(ErrorCode::refused, fmt::format("{} lies more than {} folders deep", quoted_path(name), kMostDepth));
    }
    for (const FolderEntry& entry : entries_of(path)) {
      const std::string entry_name = name + '/' + entry.name;
      if (entry.is_folder && entry.is_link) refuse_folder_link(path / entry.name);
      if (entry.is_folder) {
        add_folder(path / entry.name, entry_name, depth + 1);
      } else {
        add_file(path / entry.name, entry_name, entry.is_link);
      }
    }
  }

  void add_file(const fs::path& path, const std::string& name, bool is_link) {
    const std::string ending = ending_of(name);
    // Nobody would notice pictures that were left out without a word.
    if (is_one_of(ending, {".gif", ".bmp", ".webp", ".tif", ".tiff"})) {
      throw Error(ErrorCode::unsupported, fmt::format("the picture {} is not JPEG or PNG; convert it, or remove it",
                                                      quoted_path(path.string())));
    }
    if (!is_one_of(ending, {".jpg", ".jpeg", ".png"})) return;
    // Before the file is looked at, so that a folder of any size takes bounded memory.
    if (std::cmp_greater_equal(result_.files.size(), options_.max_files)) {
      throw Error(ErrorCode::invalid_file, fmt::format("{} holds more than {} pictures; raise max_files to read it",
                                                       quoted_path(root_.string()), options_.max_files));
    }
    const fs::path resolved = is_link ? resolved_within(path) : path;
    struct stat status {};
    if (::stat(resolved.c_str(), &status) != 0) {
      throw system_error(errno, fmt::format("cannot look at the picture {}", quoted_path(path.string())));
    }
    result_.files.push_back({.path = resolved.string(), .bytes = status.st_size, .label = label_});
    // A NUL ends the name, as no name holds one.
    add_to_digest(std::string_view(name.c_str(), name.size() + 1));
    add_to_digest(fmt::format("{}", status.st_size));
    add_to_digest(std::string_view("\0", 1));
  }

  void add_to_digest(std::string_view bytes) { digest_.update(std::as_bytes(std::span(bytes))); }

  fs::path resolved_within(const fs::path& link) const {
    std::error_code failure;
    const fs::path target = fs::canonical(link, failure);
    if (failure)
      throw system_error(failure.value(), fmt::format("cannot follow the link {}", quoted_path(link.string())));
    // By parts of paths. As texts, "/data/a" would also begin "/data/ab".
    const bool is_within = std::mismatch(root_.begin(), root_.end(), target.begin(), target.end()).first == root_.end();
    if (!is_within) {
      throw Error(ErrorCode::refused, fmt::format("the link {} leaves the folder of pictures {}; copy the picture",
                                                  quoted_path(link.string()), quoted_path(root_.string())));
    }
    return target;
  }

  [[noreturn]] static void refuse_folder_link(const fs::path& link) {
    throw Error(ErrorCode::refused,
                fmt::format("{} is a link to a folder, which is not followed; copy or bind the folder",
                            quoted_path(link.string())));
  }

  const PictureOptions& options_;
  fs::path root_;
  PictureFolder result_;
  std::int32_t label_ = 0;
  DigestBuilder digest_;
};

}  // namespace

PictureFolder list_pictures(const std::string& folder, const PictureOptions& options) {
  return PictureLister(folder, options).list();
}

std::vector<std::string> picture_classes(const std::string& folder) {
  return PictureLister(folder, {}).class_names();
}

// Runs on the threads that load. The file may have changed since the folder was listed, so everything that was checked
// then is checked again, on the open file and not on its name.
std::vector<std::uint8_t> read_listed(const PictureFile& file, std::int64_t max_file_bytes) {
  const std::string purpose = fmt::format("read the picture {}", quoted_path(file.path));
  const FileDescriptor descriptor = open_regular_file(file.path, O_RDONLY | O_NOFOLLOW, purpose);
  struct stat status {};
  if (::fstat(descriptor.value(), &status) != 0) throw system_error(errno, fmt::format("cannot {}", purpose));
  // The size is part of the description, so another one is another data set.
  if (status.st_size != file.bytes) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("cannot {}: it has {} bytes, and had {} when the folder was listed; start again", purpose,
                            status.st_size, file.bytes));
  }
  if (file.bytes > max_file_bytes) {
    throw Error(ErrorCode::invalid_file, fmt::format("cannot {}: it has {} bytes, where {} are allowed; raise "
                                                     "max_file_bytes to read it",
                                                     purpose, file.bytes, max_file_bytes));
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(file.bytes));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::read(descriptor.value(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error(errno, fmt::format("cannot {}", purpose));
    if (count == 0) {
      throw Error(ErrorCode::invalid_file, fmt::format("cannot {}: it became shorter while it was read", purpose));
    }
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

}  // namespace holdfast
