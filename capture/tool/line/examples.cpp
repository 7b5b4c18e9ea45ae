#include <tapedeck/capture/tool/line/examples.h>

namespace tapedeck::tool {

namespace {

std::vector<CommandExample>& registry() {
  static std::vector<CommandExample> all;
  return all;
}

}  // namespace

bool register_examples(std::span<const CommandExample> examples) {
  registry().insert(registry().end(), examples.begin(), examples.end());
  return true;
}

std::vector<CommandExample> examples_of(const std::string& command) {
  std::vector<CommandExample> examples;
  for (const CommandExample& example : registry())
    if (command == example.command) examples.push_back(example);
  return examples;
}

}  // namespace tapedeck::tool
