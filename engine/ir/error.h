// The exceptions that Tapedeck throws. Every mistake of a user is an Error. The class tells the kind of mistake; the message
// names the op, the types and the place of the user's call. what() reads "[op] message (file:line)", and the parts are fields.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace tapedeck TAPEDECK_API {

// A place in the user's source. Default arguments fill it in at each call. It stands in for std::source_location, which clang
// 14 does not have.
struct Site {
  const char* file = "";
  int line = 0;
};

// The text of an error, in parts.
struct ErrorText {
  std::string op;       // the op or function that was called; empty if the error belongs to none
  std::string message;  // without the op and the place
  std::string file;     // the place of the user's call; empty if it is not known
  int line = 0;         // 0 if it is not known

  std::string str() const;  // "[op] message (file:line)"; a part that is empty is left out
};

// An error can be copied without an exception, as the standard asks of exceptions: the copies share one text.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);
  explicit Error(ErrorText text);
  Error(const std::string& what, ErrorText text);  // for texts of another form

  virtual const char* kind() const noexcept { return "Error"; }  // the name of the class
  const std::string& op() const noexcept { return text_->op; }
  const std::string& message() const noexcept { return text_->message; }
  const std::string& file() const noexcept { return text_->file; }
  int line() const noexcept { return text_->line; }

 private:
  std::shared_ptr<const ErrorText> text_;
};

// Wrong shapes, dtypes or attributes in a call of an op or in a graph.
class TypeError : public Error {
 public:
  using Error::Error;
  const char* kind() const noexcept override { return "TypeError"; }
};
// Backward needs a value that does not exist: the tensor has no history, the history was freed, or the value was overwritten
// after it was saved.
class GradientError : public Error {
 public:
  using Error::Error;
  const char* kind() const noexcept override { return "GradientError"; }
};
// Code inside a capture that a graph cannot represent.
class CaptureError : public Error {
 public:
  using Error::Error;
  const char* kind() const noexcept override { return "CaptureError"; }
};
// Bad graph text: "FILE:LINE:COLUMN: error: ...".
class ParseError : public Error {
 public:
  using Error::Error;
  const char* kind() const noexcept override { return "ParseError"; }
};
// A graph or a plan that breaks an invariant.
class InvalidGraphError : public Error {
 public:
  using Error::Error;
  const char* kind() const noexcept override { return "InvalidGraphError"; }
};
// A file that is missing, truncated, corrupt, of another format, or cannot be written.
class FileError : public Error {
 public:
  using Error::Error;
  const char* kind() const noexcept override { return "FileError"; }
};
// A device that the machine does not have, or that this build does not support.
class DeviceError : public Error {
 public:
  using Error::Error;
  const char* kind() const noexcept override { return "DeviceError"; }
};
// A kernel reported a fault while it ran (for example an index out of range), or memory ran out.
class ExecutionError : public Error {
 public:
  using Error::Error;
  const char* kind() const noexcept override { return "ExecutionError"; }
};
// Bad arguments to a function that is not an op.
class UsageError : public Error {
 public:
  using Error::Error;
  const char* kind() const noexcept override { return "UsageError"; }
};
// A budget that no plan meets. It is thrown where a plan is needed to go on: by an executor that is given a plan that does not
// fit, and by a captured step. make_plan() itself returns the plan, with Plan::feasible false.
class InfeasibleError : public Error {
 public:
  InfeasibleError(ErrorText text, std::int64_t budget, std::int64_t floor)
      : Error(std::move(text)), budget_bytes_(budget), floor_bytes_(floor) {}
  const char* kind() const noexcept override { return "InfeasibleError"; }
  std::int64_t budget_bytes() const noexcept { return budget_bytes_; }
  std::int64_t floor_bytes() const noexcept { return floor_bytes_; }  // the lowest peak that any strategy here reaches

 private:
  std::int64_t budget_bytes_, floor_bytes_;
};
// The caller cancelled work before it was done: planning, calibrating or reducing.
class Cancelled : public Error {
 public:
  using Error::Error;
  const char* kind() const noexcept override { return "Cancelled"; }
};

// The parts of an error of a call at `site`. There is no place if `site.line` is 0, and no op if `op` is null or empty.
ErrorText error_text(const char* op, std::string message, Site site);

}  // namespace TAPEDECK_API
