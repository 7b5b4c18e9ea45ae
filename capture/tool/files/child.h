// A program that a command runs and waits for. No shell is involved: the words are handed over as they are.
#pragma once

#include <string>
#include <vector>

namespace tapedeck::tool {

struct ChildEnd {
  int error = 0;   // the error number of the system if the program could not be started; else 0
  int code = 0;    // its exit code
  int signal = 0;  // the signal that ended it; else 0
};

struct ChildOptions {
  std::vector<std::string> environment = {};  // "NAME=VALUE", beside the environment of this process
  std::string* output = nullptr;              // receives its stdout, at most 64 KiB; else it shares the stdout of this process
  bool stdout_to_stderr = false;              // what it prints is no answer of the command
};

// Runs the program words[0], looked up in PATH if it has no '/', and waits for its end. It shares stdin and stderr. The signals
// that would end this process go to it meanwhile.
ChildEnd run_child(const std::vector<std::string>& words, const ChildOptions& options = {});

}  // namespace tapedeck::tool
