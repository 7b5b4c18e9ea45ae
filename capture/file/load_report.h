// What a load found: the names that a file and a program do not share.
#pragma once

#include <tapedeck/kernels/export.h>

#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

struct LoadOptions {
  // Whether every name must be found on both sides with one type. If not, the load writes all that fit and reports the others.
  bool strict = true;
};

struct LoadReport {
  struct Mismatch {
    std::string name;
    std::string in_file, wanted;  // types, as "f32[3,2]"
  };
  std::vector<std::string> missing;     // the program has them, the file does not
  std::vector<std::string> unexpected;  // the file has them, the program does not
  std::vector<Mismatch> mismatched;     // both have them, with different types
  struct Note {
    std::string name;
    std::string text;  // a sentence: what the tensor is, and why it has no place; without a full stop
  };
  std::vector<Note> notes;  // about some of these names
  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  std::string to_string()
      const;  // one line for each kind, with its first names, and one for each of the first notes; empty if complete
};

}  // namespace TAPEDECK_API
