#include <tapedeck/capture/tool/line/examples.h>

namespace tapedeck::tool {

namespace {

std::vector<CommandExample>& example_registry() {
  static std::vector<CommandExample> all;
  return all;
}

}  // namespace

bool register_examples(std::span<const CommandExample> examples) {
  example_registry().insert(example_registry().end(), examples.begin(), examples.end());
  return true;
}

std::vector<CommandExample> examples_of(const std::string& command) {
  std::vector<CommandExample> examples;
  for (const CommandExample& example : example_registry())
    if (command == example.command) examples.push_back(example);
  return examples;
}

}  // namespace tapedeck::tool
