// From the words of a command line to a command with its options filled in.
#pragma once

#include <tapedeck/capture/tool/line/command.h>

#include <string>
#include <vector>

namespace tapedeck::tool {

// The request of a command line: a text to print (help, version), or a command to run.
struct Parsed {
  std::string text;
  const Command* command = nullptr;
};

// The number of words, the name of the tool among them, that are for the tool. The others are for the program that the command
// runs, whatever they begin with: in `tapedeck run -v a.cpp --json`, `--json` is not for the tool.
int count_own_words(int argc, char** argv);

// Throws UsageError, whose text says what to write instead.
Parsed parse_line(int argc, char** argv);

}  // namespace tapedeck::tool
