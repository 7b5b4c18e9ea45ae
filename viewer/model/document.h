// An opened file: a .tape file or the text of a graph, with the plan of the file if it has one.
#pragma once

#include <tapedeck/capture/plan/plan.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace tapedeck::viewer {

// An opened file.
struct Document {
  std::string path;
  std::string name;  // the file's own name, without folders
  std::shared_ptr<const Graph> captured;
  std::optional<Plan> plan;
  std::map<std::string, std::string> metadata;

  std::string title() const;  // "digits.tape · train_step"
};

// Opens a file. A name that ends in .graph means graph text; any other name means a .tape file. Header, graph and plan are
// verified; tensor data is not read. Throws FileError, ParseError, InvalidGraphError.
Document open_document(const std::string& path);

// The file name of a path.
std::string base_name(const std::string& path);

}  // namespace tapedeck::viewer
