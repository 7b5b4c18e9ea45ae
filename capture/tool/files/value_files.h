// Files of single values: where an input comes from, where --output puts values, and where --expect finds them.
#pragma once

#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/engine/eager/tensor.h>

#include <string>
#include <vector>

namespace tapedeck::tool {

struct NamedType {
  std::string name;
  Type type;
};
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// The outputs of a graph by the names that an executor gives them.
std::vector<NamedType> outputs_of(const Graph& graph);

bool is_folder(const std::string& path);  // false if nothing is there

// The value of this name in a file, by the ending of the file: .npy; .npz, .safetensors and .tape, where the tensor has the
// name or is the only one; any other ending is raw bytes of `type`. Throws FileError. The type is not checked otherwise.
Tensor load_value(const std::string& path, const std::string& name, const Type& type);

// The name of a value as the name of a file, without an ending. Every byte but letters, digits and ._- becomes %XX, and so does
// a dot in front; different names stay different.
std::string file_name_of(const std::string& value);

// What --output names: a folder, FILE.safetensors for all values, or NAME=FILE for one.
class OutputPlaces {
 public:
  // `values` are all that can be written. Throws UsageError for a name that is none of them, and for an ending that is neither
  // .npy nor .safetensors; FileError for a folder that can be neither used nor made.
  OutputPlaces(const std::vector<std::string>& places, std::vector<NamedType> values);

  std::vector<OutputFile> files() const;  // for check_outputs()
  // Writes the values that are there, and returns the paths. Throws UsageError if one that was asked for by name is not.
  std::vector<std::string> write(const std::vector<NamedTensor>& values) const;

 private:
  struct Place {
    std::string path, only;  // only: the name of the one value; empty: all
    bool is_folder = false;
  };
  void check(const Place& place) const;

  std::vector<Place> places_;
  std::vector<NamedType> values_;  // each name once
};

struct ExpectedValue {
  std::string name, file;
  Tensor tensor;
};

// What --expect names: a folder with a file for each value, as --output writes them; FILE.safetensors or FILE.npz; or
// NAME=FILE. Values of a folder or file that has none of them are noted on stderr. Throws UsageError for a name that is no
// value, FileError if a folder or a file has none at all.
std::vector<ExpectedValue> load_expected(const std::vector<std::string>& places, const std::vector<NamedType>& values);

}  // namespace tapedeck::tool
