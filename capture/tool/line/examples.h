// Examples of the commands, for their help and for the manual page. commands/examples.cpp registers those of the tool, and
// tests/capture/tool/examples_test.sh runs them.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace tapedeck::tool {

struct CommandExample {
  const char* command;
  const char* line;     // "tapedeck plan c.tape --budget 60% -o p.tape"
  const char* meaning;  // a sentence
};

// REQUIRES: happens at start-up, and the texts live as long as the process. Returns true.
bool register_examples(std::span<const CommandExample> examples);

// In the order in which they were registered; empty if the command has none.
std::vector<CommandExample> examples_of(const std::string& command);

}  // namespace tapedeck::tool
