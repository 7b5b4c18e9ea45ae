#include <tapedeck/engine/settings.h>
#include <tapedeck/engine/error.h>

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>
#include <utility>

namespace tapedeck {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int number(const char* name, int most) {
  const std::string text = variable(name);
  if (text.empty()) return 0;
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '0' + most) return text[0] - '0';
  throw UsageError(fmt::format("{}={}: takes 0 to {}", name, text, most));
}

Settings read() {
  Settings s;
  s.debug = number("TAPEDECK_DEBUG", 4);
  s.check_nan = number("TAPEDECK_CHECK_NAN", 1) != 0;
  s.dump = variable("TAPEDECK_DUMP");
  return s;
}

Settings& current() {
  static Settings s = read();
  return s;
}

}  // namespace

const Settings& settings() { return current(); }

const std::vector<SettingDoc>& setting_docs() {
  static const std::vector<SettingDoc> docs = {
      {"TAPEDECK_CHECK_NAN", "0, 1", "0", "the first op whose result holds a NaN or an infinity throws ExecutionError, naming the op, the types and the call"},
      {"TAPEDECK_DEBUG", "0 to 4", "0",
       "1: every plan made is checked; 2: passes and captures are listed on stderr; 3: every eager op, with its types and call; 4: with the least, largest and mean element of each result"},
      {"TAPEDECK_DUMP", "a folder", "none", "captured graphs, and the graph after every pass that changed it, are written there as .graph files"},
      {"TAPEDECK_TEST_OP", "an op", "all", "tests: the properties of all ops are checked of this one alone"},
      {"TAPEDECK_UPDATE_GOLDEN", "0, 1", "0", "tests: golden files are written anew instead of compared"},
  };
  return docs;
}

ScopedSettings::ScopedSettings(Settings s) : before_(std::exchange(current(), std::move(s))) {}
ScopedSettings::~ScopedSettings() { current() = std::move(before_); }

}  // namespace tapedeck
