// The exceptions that Tapedeck throws. Every mistake of a user is an Error. The class tells the kind of mistake; the message
// names the op, the types and the place of the user's call. what() reads "[op] message (file:line)".
#pragma once

#include <tapedeck/kernels/export.h>
#include <stdexcept>
#include <string>

namespace tapedeck TAPEDECK_API {

// A place in the user's source. Default arguments fill it in at each call. It stands in for std::source_location, which clang
// 14 does not have.
struct Site {
  const char* file = "";
  int line = 0;
};

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

// Wrong shapes, dtypes or attributes in a call of an op or in a graph.
class TypeError : public Error {
 public:
  using Error::Error;
};
// Backward needs a value that does not exist: the tensor has no history, the history was freed, or the value was overwritten
// after it was saved.
class GradientError : public Error {
 public:
  using Error::Error;
};
// Code inside a capture that a graph cannot represent.
class CaptureError : public Error {
 public:
  using Error::Error;
};
// Bad graph text: "FILE:LINE:COLUMN: error: ...".
class ParseError : public Error {
 public:
  using Error::Error;
};
// A graph or a plan that breaks an invariant.
class InvalidGraphError : public Error {
 public:
  using Error::Error;
};
// A file that is missing, truncated, corrupt, of another format, or cannot be written.
class FileError : public Error {
 public:
  using Error::Error;
};
// A device that the machine does not have, or that this build does not support.
class DeviceError : public Error {
 public:
  using Error::Error;
};
// A kernel reported a fault while it ran (for example an index out of range), or memory ran out.
class ExecutionError : public Error {
 public:
  using Error::Error;
};
// Bad arguments to a function that is not an op.
class UsageError : public Error {
 public:
  using Error::Error;
};
// The caller cancelled work before it was done: planning, calibrating or reducing.
class Cancelled : public Error {
 public:
  using Error::Error;
};

// The text "[op] message (file:line)". "(file:line)" is left out if `site.line` is 0, and "[op]" is left out if `op` is null
// or empty.
std::string error_text(const char* op, const std::string& message, Site site);

}  // namespace TAPEDECK_API
