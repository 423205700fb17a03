#pragma once

// Texts that a model carries in its files, by name: what the application learnt from the training part and needs to
// predict, such as encoders, vocabularies and names of classes.
//
//   trainer.attach("columns", encoder.text());                     // before the first fit()
//   const auto encoder = TableEncoder::from_text(attached_text(path, "columns"));  // next to load_model(path)
//   trainer.attach_list("classes", picture_classes(folder));       // a list: attached_list(path, "classes")
//
// They are in each savepoint and file of weights of the Trainer, under the digests of the file. Holdfast does not look
// into them. `holdfast inspect` lists their names.

#include <map>
#include <string>
#include <vector>

namespace holdfast {

// The text of that name in a savepoint or file of weights. Throws Error{not_found} that lists the names which are
// there, Error{invalid_file} for a damaged file, and what the file system throws.
std::string attached_text(const std::string& path, const std::string& name);

// The texts of a list. Throws as attached_text() does, and Error{invalid_argument} for a text that
// Trainer::attach_list() did not make.
std::vector<std::string> attached_list(const std::string& path, const std::string& name);

// All of them, by name; a list is an array of JSON; empty for a file without any. Throws as attached_text() does.
std::map<std::string, std::string> attached_texts(const std::string& path);

}  // namespace holdfast
