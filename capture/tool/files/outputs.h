// The files that a command writes. No file may overwrite another one or a file that is read; - is stdout for text.
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

// Throws UsageError if two of the outputs are the same file, or if one is among `inputs`. Links, and names such as ./x and x,
// are the same file. Call it before anything is computed.
void check_outputs(const std::vector<std::string>& inputs, const std::vector<OutputFile>& outputs);

// The whole file or none of it; "-": to stdout. Throws FileError.
void write_text(const std::string& path, std::string_view text);

// Prints a part of the answer of a command. Throws FileError if the stream takes no more, as that of a full disk.
void answer(std::string_view text, std::FILE* stream = stdout);

// Writes what still waits in the buffer of stdout. Throws FileError if any part of the answer was not written.
void finish_answer();

// The stream for the answer of a command: stderr if the file at `path` is stdout, else stdout.
std::FILE* answers_beside(const std::string& path);

}  // namespace tapedeck::tool
