// Identities read from their text (identities.h): a pattern is a small tree of ops.
#pragma once

#include <tapedeck/capture/passes/identities.h>
#include <tapedeck/engine/ir/op.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck {

struct Pattern {
  enum class Kind : std::uint8_t { op, value, number_variable, number } kind = Kind::value;
  const Op* op = nullptr;                                             // Kind::op
  std::vector<std::pair<std::string, std::int64_t>> attributes = {};  // attributes that must have these values
  std::vector<Pattern> operands = {};
  char variable = 0;  // x y t; k l
  double number = 0;
};

struct Rule {
  Identity identity;
  Pattern from, to;
};

// Throws UsageError that names the text if it is no pattern or names an unknown op.
Pattern parse_pattern(const std::string& text);
std::vector<Rule> parse_rules(std::span<const Identity> identities);

}  // namespace tapedeck
