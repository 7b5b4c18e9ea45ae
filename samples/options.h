// The command line of the programs that train: --steps N --seed N --data FILE.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace samples {

// The options of a sample program, with their defaults.
struct Options {
  std::string data;
  int steps = 0;
  unsigned seed = 7;
};

// Parses the command line. If an argument is wrong, prints one line about the usage and ends the program with exit code 2.
inline Options parse_options(int argc, char** argv, Options options) {
  const char* slash = std::strrchr(argv[0], '/');
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (!std::strcmp(argv[i], "--data") && more)
      options.data = argv[++i];
    else if (!std::strcmp(argv[i], "--steps") && more && std::atoi(argv[i + 1]) > 0)
      options.steps = std::atoi(argv[++i]);
    else if (!std::strcmp(argv[i], "--seed") && more)
      options.seed = static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 10));
    else {
      std::fprintf(stderr, "usage: %s [--data FILE] [--steps N] [--seed N]\n", slash ? slash + 1 : argv[0]);
      std::exit(2);
    }
  }
  return options;
}

}  // namespace samples
