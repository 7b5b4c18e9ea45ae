// Files that commands write: none over another or over what is read, and - for stdout where it is text.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck::tool {

struct OutputFile {
  const char* option;    // "--csv"
  std::string path;      // empty: not asked for
  bool is_text = false;  // - is stdout; else it is refused
};

// UsageError if two of the outputs are one file, or one is among `inputs`, whatever they are called: links, ./x and x. Call it
// before anything is computed.
void check_outputs(const std::vector<std::string>& inputs, const std::vector<OutputFile>& outputs);

// The whole file or none of it; "-": to stdout. Throws FileError.
void write_text(const std::string& path, std::string_view text);

// Where else a command's answer goes: stderr while one of its files is stdout.
std::FILE* answers_beside(const std::string& path);

}  // namespace tapedeck::tool
