// Writes HDF5 files for other programs. The same tree must give the same bytes, so objects and attributes are sorted
// and no times are stored. All arguments are checked before HDF5 sees them: any failure after that is a lack of
// memory.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "bytes/array_checks.h"
#include "foreign_hdf5/tree.h"
#include "foreign_hdf5/tree_names.h"
#include "hdf5/hdf5_session.h"
#include "hdf5/memory_image.h"
#include "holdfast/base/shape_bytes.h"
#include "holdfast/base/utf8.h"
#include "holdfast/base/whole_file.h"

namespace holdfast::format {
namespace {

constexpr const char* kDTypeAttribute = "dtype";

// What to write, in order: groups (parents before their children), datasets, texts; attributes by name.
struct Plan {
  std::map<std::string, std::vector<const Hdf5Attribute*>> groups;
  std::map<std::string, const Hdf5Dataset*> datasets;
  std::map<std::string, const Hdf5Text*> texts;
};

// Pointers, since values may be large.
std::vector<const Hdf5Attribute*> sorted(const std::vector<Hdf5Attribute>& attributes) {
  std::vector<const Hdf5Attribute*> result;
  for (const Hdf5Attribute& attribute : attributes) result.push_back(&attribute);
  std::sort(result.begin(), result.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  return result;
}

// Checks the arguments before HDF5 sees any.
class Planner {
 public:
  explicit Planner(const std::string& label)
      : check_(ErrorCode::invalid_argument, fmt::format("cannot write {}: ", label), "; change it and write again") {}

  Plan plan(const Hdf5Tree& tree) const {
    Plan plan;
    // A tree without groups still has a root.
    plan.groups.emplace("", std::vector<const Hdf5Attribute*>{});
    std::set<std::string> listed;
    for (const Hdf5Group& group : tree.groups) {
      // The root may be listed, and has an empty path, which is valid for nothing else.
      const std::string label = describe("group", group.path);
      if (!group.path.empty()) check_path(group.path);
      check_.require(listed.insert(group.path).second, fmt::format("{} is listed twice", label));
      check_attributes(group.attributes, label);
      plan.groups[group.path] = sorted(group.attributes);
    }
    for (const Hdf5Dataset& dataset : tree.datasets) {
      check_dataset(dataset);
      check_.require(plan.datasets.emplace(dataset.array.name, &dataset).second,
                     fmt::format("{} is listed twice", describe("dataset", dataset.array.name)));
    }
    for (const Hdf5Text& text : tree.texts) {
      check_text(text);
      // A text is a dataset in HDF5, too, so the two kinds share their paths.
      const bool is_new = !plan.datasets.contains(text.path) && plan.texts.emplace(text.path, &text).second;
      check_.require(is_new, fmt::format("{} is listed twice", describe("text", text.path)));
    }
    add_implied_groups(plan);
    for (const auto& [path, dataset] : plan.datasets) check_is_no_group(plan, "dataset", path);
    for (const auto& [path, text] : plan.texts) check_is_no_group(plan, "text", path);
    return plan;
  }

 private:
  static std::string describe(const std::string& kind, const std::string& path) {
    return fmt::format("{} \"{}\"", kind, path);
  }

  // HDF5 needs every group on the way to an object.
  static void add_implied_groups(Plan& plan) {
    std::vector<std::string> paths;
    for (const auto& [path, attributes] : plan.groups) paths.push_back(path);
    for (const auto& [path, dataset] : plan.datasets) paths.push_back(path);
    for (const auto& [path, text] : plan.texts) paths.push_back(path);
    // Every prefix that ends at a slash is a group.
    for (const std::string& path : paths) {
      for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
        plan.groups.try_emplace(path.substr(0, slash));
      }
    }
  }

  void check_is_no_group(const Plan& plan, const std::string& kind, const std::string& path) const {
    check_.require(!plan.groups.contains(path), fmt::format("{} is also a group", describe(kind, path)));
  }

  void check_path(const std::string& path) const {
    check_.require(is_utf8(path), fmt::format("a path of {} bytes is not UTF-8 text without NUL", path.size()));
    const std::string problem = problem_of_path(path);
    check_.require(problem.empty(), fmt::format("{} {}", describe("path", path), problem));
  }

  void check_dataset(const Hdf5Dataset& dataset) const {
    const NamedArray& array = dataset.array;
    const std::string label = describe("dataset", array.name);
    check_path(array.name);
    check_numbers(array, label);
    check_attributes(dataset.attributes, label);
    // The attribute would decide how a reader takes the two bytes.
    check_.require(array.dtype != DType::bf16 || find_attribute(dataset.attributes, kDTypeAttribute) == nullptr,
                   fmt::format("{} has an attribute dtype, which is reserved for bf16", label));
  }

  void check_text(const Hdf5Text& text) const {
    const std::string label = describe("text", text.path);
    check_path(text.path);
    check_value(text.text, label);
    check_attributes(text.attributes, label);
  }

  // HDF5 would fail at some of these and write others in a form that readers refuse.
  void check_attributes(const std::vector<Hdf5Attribute>& attributes, const std::string& owner) const {
    std::set<std::string_view> names;
    for (const Hdf5Attribute& attribute : attributes) {
      check_.require(!attribute.name.empty() && attribute.name.size() <= kMaxTreePathBytes && is_utf8(attribute.name),
                     fmt::format("an attribute of {} has no valid name", owner));
      const std::string label = fmt::format("attribute \"{}\" of {}", attribute.name, owner);
      check_.require(names.insert(attribute.name).second, fmt::format("{} is listed twice", label));
      std::visit([&](const auto& value) { check_value(value, label); }, attribute.value);
    }
  }

  void check_value(const std::string& text, const std::string& label) const {
    check_.require(is_utf8(text), fmt::format("{} is not UTF-8 text without NUL", label));
  }
  void check_value(const std::vector<std::string>& texts, const std::string& label) const {
    for (const std::string& text : texts) check_value(text, label);
  }
  void check_value(const NamedArray& array, const std::string& label) const {
    check_numbers(array, label);
    check_.require(array.dtype != DType::bf16, fmt::format("{} is bf16, which an attribute cannot hold", label));
  }

  void check_numbers(const NamedArray& array, const std::string& label) const {
    std::uint64_t bytes = 0;
    const bool is_countable = multiply_shape(array.shape, size_bytes(array.dtype), bytes);
    check_.require(array.shape.size() <= kMaxAxes, fmt::format("{} has more than {} axes", label, kMaxAxes));
    check_.require(is_countable && bytes == array.bytes.size(),
                   fmt::format("{} has {} bytes, but its shape needs {}", label, array.bytes.size(),
                               bytes_for_shape(array.shape, size_bytes(array.dtype))));
  }

  Checker check_;
};

class TreeComposer {
 public:
  // `image` must outlive the object.
  TreeComposer(const std::string& label, GrowingImage& image)
      : check_(Checker::of_writing(label)), link_list_(utf8_link_list(check_)), file_(create_file(image)) {}

  void write(const Plan& plan) {
    for (const auto& [path, attributes] : plan.groups) {
      // The map is sorted, so parents are created before their children.
      const Handle group = path.empty() ? open_root() : create_group(path);
      for (const Hdf5Attribute* attribute : attributes) write_attribute(group, *attribute);
    }
    for (const auto& [path, dataset] : plan.datasets) write_dataset(*dataset);
    for (const auto& [path, text] : plan.texts) write_text(*text);
    // Closing writes what HDF5 still holds back, so only its result shows whether the image is whole.
    check_.succeeded(file_.reset(), "cannot close the file");
  }

 private:
  // The file is composed in memory, and HDF5 never touches the disk.
  Handle create_file(GrowingImage& image) const {
    const Handle creation = untimed_list(check_, H5P_FILE_CREATE);
    const Handle access = driver_access_list(check_, image);
    return check_.opened(H5Fcreate("holdfast", H5F_ACC_TRUNC, creation, access), H5Fclose, "HDF5 cannot create a file");
  }

  Handle open_root() const {
    return check_.opened(H5Gopen2(file_, "/", H5P_DEFAULT), H5Gclose, "cannot open the root");
  }

  // Without times: they would make equal trees differ.
  Handle create_group(const std::string& path) const {
    const Handle creation = untimed_list(check_, H5P_GROUP_CREATE);
    return check_.opened(H5Gcreate2(file_, path.c_str(), link_list_, creation, H5P_DEFAULT), H5Gclose,
                         fmt::format("cannot create group {}", path));
  }

  Handle create_dataset(const std::string& path, hid_t type, hid_t space) const {
    const Handle creation = untimed_list(check_, H5P_DATASET_CREATE);
    return check_.opened(H5Dcreate2(file_, path.c_str(), type, space, link_list_, creation, H5P_DEFAULT), H5Dclose,
                         fmt::format("cannot create dataset {}", path));
  }

  void write_text(const Hdf5Text& text) const {
    const Handle type = string_type();
    const Handle dataset = create_dataset(text.path, type, create_space({}));
    // HDF5 takes strings of variable length as pointers, and copies what they point to.
    const char* pointer = text.text.c_str();
    check_.succeeded(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &pointer),
                     fmt::format("cannot write dataset {}", text.path));
    for (const Hdf5Attribute* attribute : sorted(text.attributes)) write_attribute(dataset, *attribute);
  }

  void write_dataset(const Hdf5Dataset& dataset) const {
    const NamedArray& array = dataset.array;
    // Contiguous, which is HDF5's default: plain readers need no filters then.
    const Handle type = stored_type(array.dtype);
    const Handle handle = create_dataset(array.name, type, create_space(array.shape));
    if (!array.bytes.empty()) {
      check_.succeeded(H5Dwrite(handle, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.bytes.data()),
                       fmt::format("cannot write dataset {}", array.name));
    }
    if (array.dtype == DType::bf16) write_attribute(handle, {kDTypeAttribute, std::string("bfloat16")});
    for (const Hdf5Attribute* attribute : sorted(dataset.attributes)) write_attribute(handle, *attribute);
  }

  void write_attribute(hid_t owner, const Hdf5Attribute& attribute) const {
    std::visit([&](const auto& value) { write_value(owner, attribute.name, value); }, attribute.value);
  }

  void write_value(hid_t owner, const std::string& name, const std::string& text) const {
    const Handle space =
        check_.opened(H5Screate(H5S_SCALAR), H5Sclose, fmt::format("cannot create a dataspace for attribute {}", name));
    const char* pointer = text.c_str();
    write_value(owner, name, string_type(), space, &pointer);
  }

  void write_value(hid_t owner, const std::string& name, const std::vector<std::string>& texts) const {
    const Handle space = create_space({texts.size()});
    std::vector<const char*> pointers;
    for (const std::string& text : texts) pointers.push_back(text.c_str());
    write_value(owner, name, string_type(), space, pointers.data());
  }

  void write_value(hid_t owner, const std::string& name, const NamedArray& array) const {
    const Handle space = create_space(array.shape);
    write_value(owner, name, stored_type(array.dtype), space, array.bytes.data());
  }

  // `elements` may be null if the space has no elements.
  void write_value(hid_t owner, const std::string& name, hid_t type, hid_t space, const void* elements) const {
    const Handle creation =
        check_.opened(H5Pcreate(H5P_ATTRIBUTE_CREATE), H5Pclose, "cannot create an attribute creation list");
    check_.succeeded(H5Pset_char_encoding(creation, H5T_CSET_UTF8), "cannot set UTF-8 names");
    const Handle attribute = check_.opened(H5Acreate2(owner, name.c_str(), type, space, creation, H5P_DEFAULT),
                                           H5Aclose, fmt::format("cannot create attribute {}", name));
    // HDF5 refuses a null pointer, even for nothing.
    if (H5Sget_simple_extent_npoints(space) == 0) return;
    check_.succeeded(H5Awrite(attribute, type, elements), fmt::format("cannot write attribute {}", name));
  }

  Handle create_space(const std::vector<std::uint64_t>& shape) const {
    const std::vector<hsize_t> extents(shape.begin(), shape.end());
    const hid_t id = shape.empty() ? H5Screate(H5S_SCALAR)
                                   : H5Screate_simple(static_cast<int>(shape.size()), extents.data(), nullptr);
    return check_.opened(id, H5Sclose, "cannot create a dataspace");
  }

  Handle string_type() const {
    Handle type = check_.opened(H5Tcopy(H5T_C_S1), H5Tclose, "cannot create a string type");
    check_.succeeded(H5Tset_size(type, H5T_VARIABLE), "cannot create a string type");
    check_.succeeded(H5Tset_cset(type, H5T_CSET_UTF8), "cannot create a string type");
    return type;
  }

  Handle stored_type(DType dtype) const {
    // HDF5 1.10 has no bfloat16. Keras stores it as two opaque bytes with an attribute that names the type.
    if (dtype == DType::bf16) return check_.opened(H5Tcreate(H5T_OPAQUE, 2), H5Tclose, "cannot create an opaque type");
    if (dtype == DType::boolean) return boolean_type();
    return element_type(check_, dtype);
  }

  // As h5py stores bool: an enumeration of FALSE and TRUE in one byte.
  Handle boolean_type() const {
    Handle type = check_.opened(H5Tenum_create(H5T_STD_I8LE), H5Tclose, "cannot create an enumeration");
    for (const auto& [name, value] : {std::pair<const char*, std::int8_t>{"FALSE", 0}, {"TRUE", 1}}) {
      check_.succeeded(H5Tenum_insert(type, name, &value), "cannot create an enumeration");
    }
    return type;
  }

  Checker check_;
  Handle link_list_;
  Handle file_;
};

}  // namespace

std::vector<std::byte> compose_hdf5_tree(const std::string& label, const Hdf5Tree& tree) {
  // Throws for everything that a user can change. What follows can lack memory only.
  const Plan plan = Planner(label).plan(tree);
  try {
    std::size_t bytes = 0;
    for (const Hdf5Dataset& dataset : tree.datasets) bytes += dataset.array.bytes.size();
    // Growing in steps would copy the image again and again.
    GrowingImage image(bytes + bytes / 8);
    const Session session;
    TreeComposer(label, image).write(plan);
    return image.take_bytes();
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("not enough memory to compose {}; free some memory and try again", label));
  }
}

void write_hdf5_tree(FileSystem& files, const std::string& path, const Hdf5Tree& tree) {
  const std::vector<std::byte> image = compose_hdf5_tree(path, tree);
  write_whole_file(files, path, [&](File& file) { file.write_at(0, image); });
}

}  // namespace holdfast::format
