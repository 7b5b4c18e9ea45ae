#include <tapedeck/capture/passes/pattern.h>

#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <cctype>
#include <cstdlib>

namespace tapedeck {

namespace {

class PatternReader {
 public:
  explicit PatternReader(const std::string& text) : text_(text) {}

  Pattern whole() {
    Pattern p = pattern();
    if (at_ < text_.size()) fail();
    return p;
  }

 private:
  [[noreturn]] void fail() const { throw UsageError(fmt::format("'{}' is no pattern (at {})", text_, at_)); }

  bool take(char c) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  double number() {
    const char* first = text_.c_str() + at_;
    char* end = nullptr;
    const double value = std::strtod(first, &end);
    if (end == first) fail();
    at_ += static_cast<std::size_t>(end - first);
    return value;
  }

  std::string word() {
    const std::size_t first = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    if (at_ == first) fail();
    return text_.substr(first, at_ - first);
  }

  Pattern pattern() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    Pattern p;
    if (at_ < text_.size() && (text_[at_] == '-' || std::isdigit(static_cast<unsigned char>(text_[at_])))) {
      p.kind = Pattern::Kind::number;
      p.number = number();
      return p;
    }
    const std::string name = word();
    if (name.size() == 1) {
      p.kind = name == "k" || name == "l" ? Pattern::Kind::number_variable : Pattern::Kind::value;
      p.variable = name[0];
      return p;
    }
    p.kind = Pattern::Kind::op;
    p.op = find_op(name);
    if (!p.op) throw UsageError(fmt::format("'{}' names no op that there is: {}", text_, name));
    if (take('{')) attributes(p);
    if (!take('(')) fail();
    do p.operands.push_back(pattern());
    while (take(','));
    if (!take(')')) fail();
    return p;
  }

  void attributes(Pattern& p) {
    do {
      const std::string name = word();
      if (!take('=')) fail();
      p.attributes.emplace_back(name, static_cast<std::int64_t>(number()));
    } while (take(','));
    if (!take('}')) fail();
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace

Pattern parse_pattern(const std::string& text) { return PatternReader(text).whole(); }

std::vector<Rule> parse_rules(std::span<const Identity> identities) {
  std::vector<Rule> rules;
  for (const Identity& identity : identities)
    rules.push_back({identity, parse_pattern(identity.from), parse_pattern(identity.to)});
  return rules;
}

}  // namespace tapedeck
