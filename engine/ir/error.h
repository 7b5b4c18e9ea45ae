// Every mistake a user can make is an Error with a kind, a message that names the op and the types, and the place of the user's
// call. what() reads "[op] message (file:line)".
#pragma once

#include <tapedeck/kernels/export.h>
#include <stdexcept>
#include <string>

namespace tapedeck TAPEDECK_API {

// A place in the user's source, filled in by default arguments (clang 14 has no std::source_location, so this is it).
struct Site {
  const char* file = "";
  int line = 0;
};

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

// Wrong shapes, dtypes or attributes at an op, or in a graph.
class TypeError : public Error {
 public:
  using Error::Error;
};
// Backward asked for something that is not there: no history, freed, or overwritten since it was saved.
class GradientError : public Error {
 public:
  using Error::Error;
};
// Running code that a capture cannot represent.
class CaptureError : public Error {
 public:
  using Error::Error;
};
// Bad graph text: "FILE:LINE:COLUMN: error: ...".
class ParseError : public Error {
 public:
  using Error::Error;
};
// A graph or plan that breaks its own rules.
class InvalidGraphError : public Error {
 public:
  using Error::Error;
};
// A file that is missing, truncated, corrupt, foreign, or cannot be written.
class FileError : public Error {
 public:
  using Error::Error;
};
// A device that is not there, or was not built in.
class DeviceError : public Error {
 public:
  using Error::Error;
};
// A kernel reported a fault while running (an index out of range), or memory ran out.
class ExecutionError : public Error {
 public:
  using Error::Error;
};
// Bad arguments to a function that is not an op.
class UsageError : public Error {
 public:
  using Error::Error;
};
// Work that its caller cancelled before it was done: planning, calibrating, reducing.
class Cancelled : public Error {
 public:
  using Error::Error;
};

// "[op] message (file:line)"; the site is left out when it has no line.
std::string error_text(const char* op, const std::string& message, Site site);

}  // namespace TAPEDECK_API
