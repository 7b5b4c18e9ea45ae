// The compiler of scripts, and the library and the headers that a script is compiled against: those of this tool, installed or
// in a build tree.
#pragma once

#include <string>
#include <vector>

namespace tapedeck::tool {

struct ScriptCompiler {
  std::vector<std::string> command;  // the program, and the words that CXX has behind it
  std::string version;               // what it prints for --version
  std::string library;               // the file that this process has loaded
  std::string include_folder;        // has tapedeck/tapedeck.h
};

// The compiler that CXX names, else the one that built this tool, else c++. Throws DeviceError if it cannot be run, and
// FileError if the headers are not beside the library.
ScriptCompiler find_compiler();

// The command that compiles `script` to `program`, and lists the files that it reads in `inputs`, in the language of make.
// `flags` are further words for the compiler.
std::vector<std::string> compile_command(const ScriptCompiler& compiler, const std::vector<std::string>& flags,
                                         const std::string& script, const std::string& program, const std::string& inputs);

// The files that such a list names.
std::vector<std::string> listed_inputs(const std::string& text);

}  // namespace tapedeck::tool
