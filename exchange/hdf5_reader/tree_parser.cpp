// Walks a file with HDF5's own parser, inside the sandbox. All objects are listed and checked before any is sent, so
// that nothing is sent of a file that asks for too much. The walk uses no recursion and hard links only, and visits
// each object once. Reasons: docs/decisions/exchange.md.

#include "tree_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "attribute_reader.h"
#include "dataset_reader.h"
#include "element_types.h"
#include "foreign_hdf5/foreign_rules.h"
#include "foreign_hdf5/tree_names.h"
#include "hdf5/hdf5_session.h"
#include "hdf5/memory_image.h"

namespace holdfast::hdf5_reader {
namespace {

using format::Checker;
using format::FixedImage;
using format::Handle;
using format::Hdf5Attribute;
using format::label_of;
using format::TreeEncoder;
using format::TreeLimits;

struct Link {
  std::string name;
  bool is_hard;
};

struct LinkList {
  std::vector<Link> links;
  std::uint64_t room;  // how many more links fit
  bool is_full = false;
};

herr_t append_link(hid_t, const char* name, const H5L_info_t* info, void* data) {
  try {
    auto& list = *static_cast<LinkList*>(data);
    list.is_full = list.room-- == 0;
    if (list.is_full) return -1;
    list.links.push_back({.name = name, .is_hard = info->type == H5L_TYPE_HARD});
    return 0;
  } catch (const std::exception&) {
    return -1;  // HDF5 is C: no exception may pass through it
  }
}

// The size in a record; see tree_stream.h.
// An estimate from above: the bound that it is compared with has room to spare.
std::uint64_t size_of(const Hdf5Attribute& attribute) {
  constexpr std::uint64_t kHead = 16;
  if (const auto* text = std::get_if<std::string>(&attribute.value)) return kHead + text->size();
  if (const auto* array = std::get_if<format::NamedArray>(&attribute.value)) {
    return kHead + 8 * array->shape.size() + array->bytes.size();
  }
  std::uint64_t bytes = kHead;
  for (const std::string& text : std::get<std::vector<std::string>>(attribute.value)) bytes += kHead + text.size();
  return bytes;
}

// Lists, checks and reads the objects of one file.
class Parser {
 public:
  Parser(std::span<const std::byte> file, const TreeRequest& request, TreeEncoder& encoder)
      : check_(ErrorCode::invalid_file, "", ""),
        limits_(request.limits),
        request_(request),
        encoder_(encoder),
        file_bytes_(file.size()),
        types_(check_),
        attribute_reader_(check_, types_, file_bytes_),
        dataset_reader_(check_, types_, attribute_reader_, file_bytes_, limits_.max_memory_bytes),
        image_(file),
        file_(open()) {}

  // Checks all objects before it reads any, so that nothing is sent of a file that asks for too much.
  void parse() {
    list_objects();
    for (const std::string& path : groups_) {
      const Handle group = open_object(path, H5I_GROUP);
      encoder_.add_group({path, read_attributes(group, path)});
    }
    for (const std::string& path : datasets_) {
      if (is_asked_for(path)) read_dataset(path);
    }
    if (!request_.paths.empty()) return;
    for (const std::string& path : texts_) read_text(path);
  }

 private:
  bool is_asked_for(const std::string& path) const {
    return request_.paths.empty() || std::ranges::find(request_.paths, path) != request_.paths.end();
  }

  // Runs `action`. Where the caller wants what can be read, an error of the file becomes an entry of the list, and the
  // result is false.
  template <typename Action>
  bool can(const std::string& path, const Action& action) {
    if (request_.demand == format::TreeDemand::whole) return action(), true;
    try {
      action();
      return true;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_file) throw;
      // Counted like a name, so that no file makes the list longer than itself.
      note_head_bytes(2 * path.size() + std::string_view(error.what()).size());
      encoder_.add_unreadable({path, error.what()});
      return false;
    }
  }

  // The driver reads from memory, so HDF5 needs no descriptor.
  Handle open() {
    const Handle access = driver_access_list(check_, image_);
    // The name is absolute, so that HDF5 does not ask for the working directory.
    return check_.opened(H5Fopen("/file", H5F_ACC_RDONLY, access), H5Fclose, "HDF5 cannot open it");
  }

  Handle open_object(const std::string& path, H5I_type_t kind) const {
    const std::string from_root = "/" + path;
    // The kind is compared again: a damaged file may answer differently the second time.
    Handle object = check_.opened(H5Oopen(file_, from_root.c_str(), H5P_DEFAULT), H5Oclose,
                                  fmt::format("{} cannot be opened", label_of(path)));
    check_.require(H5Iget_type(object) == kind,
                   fmt::format("{} is of another kind than its listing says", label_of(path)));
    return object;
  }

  // Visits each object once, without recursion and through hard links alone.
  void list_objects() {
    std::vector<std::string> waiting{""};
    note_object(object_info(""), "");
    // A stack of paths: recursion would let the file choose the depth of ours.
    while (!waiting.empty()) {
      const std::string group = std::move(waiting.back());
      waiting.pop_back();
      std::vector<Link> links;
      // A group whose links cannot be listed stays in the tree, so that its siblings have their parents.
      can(group, [&] { links = list_links(group); });
      for (const Link& link : links) {
        const std::string path = group.empty() ? link.name : group + "/" + link.name;
        can(path, [&] {
          if (note_link(path, link) == H5O_TYPE_GROUP) {
            waiting.push_back(path);
          } else {
            note_dataset(path);
          }
        });
      }
      groups_.push_back(group);
    }
    // The receiver requires this order. HDF5's own order is only within one group.
    std::sort(groups_.begin(), groups_.end());
    std::sort(datasets_.begin(), datasets_.end());
    std::sort(texts_.begin(), texts_.end());
  }

  // Returns the kind of the object, a group or a dataset.
  H5O_type_t note_link(const std::string& path, const Link& link) {
    const std::string problem = format::problem_of_link(path, link.name, link.is_hard);
    check_.require(problem.empty(), label_of(path) + problem);
    const H5O_info_t info = object_info(path);
    note_object(info, path);
    check_.require(info.type == H5O_TYPE_GROUP || info.type == H5O_TYPE_DATASET,
                   fmt::format("{} is a named type, which holds no data", label_of(path)));
    return info.type;
  }

  std::vector<Link> list_links(const std::string& group) const {
    const Handle handle = open_object(group, H5I_GROUP);
    LinkList list{.links = {}, .room = limits_.max_objects};
    const herr_t result = H5Literate(handle, H5_INDEX_NAME, H5_ITER_INC, nullptr, append_link, &list);
    check_.require(!list.is_full, too_many_objects());
    check_.succeeded(result, fmt::format("the links of {} cannot be listed", label_of(group)));
    return std::move(list.links);
  }

  std::string too_many_objects() const { return fmt::format("it has more than {} objects", limits_.max_objects); }

  H5O_info_t object_info(const std::string& path) const {
    const std::string from_root = "/" + path;
    H5O_info_t info{};
    check_.succeeded(H5Oget_info_by_name2(file_, from_root.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT),
                     fmt::format("{} cannot be inspected", label_of(path)));
    return info;
  }

  void note_object(const H5O_info_t& info, const std::string& path) {
    // An object that is visited twice is a loop or has two names. A dataset cannot be part of a loop.
    is_second_name_ = !addresses_.insert(info.addr).second;
    const bool is_allowed = request_.demand == format::TreeDemand::readable && info.type == H5O_TYPE_DATASET;
    check_.require(!is_second_name_ || is_allowed, label_of(path) + format::kSecondName);
    check_.require(addresses_.size() <= limits_.max_objects, too_many_objects());
    constexpr std::uint64_t kHead = 300;  // the head of a record with 32 axes
    note_head_bytes(kHead + path.size());
  }

  void note_dataset(const std::string& path) {
    // The sum of all declarations is bounded, not only each of them.
    const DatasetInfo info = dataset_reader_.describe(open_object(path, H5I_DATASET), label_of(path));
    // What nobody asked for is not sent.
    if (!is_asked_for(path)) return;
    std::uint64_t declared = 0;
    const bool is_countable = !__builtin_add_overflow(declared_bytes_, info.bytes, &declared);
    check_.require(is_countable && declared <= format::max_declared_bytes(file_bytes_, limits_),
                   fmt::format("its datasets declare at least {} bytes up to {}, but the file has only {}", declared,
                               label_of(path), file_bytes_));
    // Honest datasets do not share bytes.
    const std::uint64_t stored = stored_bytes_ + (is_second_name_ ? 0 : info.stored_bytes);
    check_.require(stored <= file_bytes_, "its datasets store more bytes than the file has");
    declared_bytes_ = declared;
    stored_bytes_ = stored;
    (info.is_text ? texts_ : datasets_).push_back(path);
  }

  void note_head_bytes(std::uint64_t bytes) {
    head_bytes_ += bytes;
    check_.require(head_bytes_ <= format::max_head_bytes(file_bytes_),
                   "its names, attributes and texts are larger than the file can hold");
  }

  void read_dataset(const std::string& path) {
    const std::string label = label_of(path);
    const Handle dataset = open_object(path, H5I_DATASET);
    const DatasetInfo info = dataset_reader_.describe(dataset, label);
    check_.require(!info.is_text, fmt::format("{} is of another kind than its listing says", label));
    std::vector<Hdf5Attribute> attributes = read_attributes(dataset, path);
    // The attribute says that the elements are bfloat16, which the element type already says.
    if (info.is_opaque) std::erase_if(attributes, [](const Hdf5Attribute& each) { return each.name == "dtype"; });
    encoder_.add_dataset({{path, info.type.dtype, info.shape, {}}, std::move(attributes)});
    if (request_.part == TreePart::all) dataset_reader_.read(dataset, info, label, encoder_);
  }

  void read_text(const std::string& path) {
    const std::string label = label_of(path);
    const Handle dataset = open_object(path, H5I_DATASET);
    check_.require(dataset_reader_.describe(dataset, label).is_text,
                   fmt::format("{} is of another kind than its listing says", label));
    std::string text;
    if (!can(path, [&] { text = dataset_reader_.read_text(dataset, label); })) return;
    note_head_bytes(text.size());
    encoder_.add_text({path, std::move(text), read_attributes(dataset, path)});
  }

  // `path` is that of the object. Readers of single datasets get none.
  std::vector<Hdf5Attribute> read_attributes(hid_t object, const std::string& path) {
    std::vector<Hdf5Attribute> attributes;
    if (!request_.paths.empty()) return attributes;
    const std::string owner = label_of(path);
    std::vector<std::string> names;
    can(path, [&] { names = attribute_reader_.list(object, owner, limits_.max_objects); });
    for (const std::string& name : names) {
      if (!can(path, [&] { attributes.push_back(attribute_reader_.read(object, name, owner)); })) continue;
      // Counted while they are read, so that no file makes this list larger than itself.
      note_head_bytes(name.size() + size_of(attributes.back()));
    }
    return attributes;
  }

  Checker check_;
  TreeLimits limits_;
  const TreeRequest& request_;
  TreeEncoder& encoder_;
  std::uint64_t file_bytes_;
  ElementTypes types_;
  AttributeReader attribute_reader_;
  DatasetReader dataset_reader_;
  FixedImage image_;
  Handle file_;

  std::vector<std::string> groups_;
  std::vector<std::string> datasets_;
  std::vector<std::string> texts_;
  std::set<haddr_t> addresses_;
  bool is_second_name_ = false;  // the object that was noted last
  std::uint64_t declared_bytes_ = 0;
  std::uint64_t stored_bytes_ = 0;
  std::uint64_t head_bytes_ = 0;  // names, attributes and texts
};

}  // namespace

bool prepare_hdf5() {
  return H5dont_atexit() >= 0 && H5open() >= 0;
}

void parse_hdf5_tree(std::span<const std::byte> file, const TreeRequest& request, TreeEncoder& encoder) {
  const format::Session session;
  Parser(file, request, encoder).parse();
}

}  // namespace holdfast::hdf5_reader
