// The lines of a trace of simrd (simrd.h), one after another, each with everything that its instruction needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck {

enum class TraceEvent : std::uint8_t { constant, memory, call, alias, mutate, copy, copy_from, release, annotate };

struct TraceLine {
  TraceEvent event = TraceEvent::annotate;
  std::uint32_t number = 0;           // in the file, from 1
  std::string name;                   // of the tensor or the op; DST of a copy; the annotation
  std::string source;                 // SRC of a copy
  std::vector<std::string> args;      // of a call or mutation
  std::vector<std::string> results;   // of a call
  std::vector<std::int64_t> mutated;  // numbers of arguments
  std::int64_t number_of = 0;         // bytes of MEMORY; argument of ALIAS, or -1
  double nanoseconds = 0;             // of a call or mutation
};

class TraceLines {
 public:
  // REQUIRES: text and file outlive this object.
  TraceLines(std::string_view text, const std::string& file) : left_(text), file_(file) {}

  // Returns false at the end. Passes over blank lines. Throws ParseError for a line that is wrong by itself.
  bool next(TraceLine* line);
  std::uint32_t number() const { return number_; }  // of the last line that was read

 private:
  std::string_view left_;
  const std::string& file_;
  std::uint32_t number_ = 0;
};

}  // namespace tapedeck
