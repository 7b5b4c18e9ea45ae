// One option of a command, stated once. The parser, the help text and the completions of shells all read it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace tapedeck::tool {

// The member that receives the value. A bool makes the option a flag, which takes no value.
using Target = std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*, std::vector<int>*,
                            std::vector<std::string>*>;

// How an option that holds a list takes several values.
enum class Several : std::uint8_t {
  again,   // --load a.so --load b.so
  commas,  // --pass cse,dce
  words,   // --check a.tape b.tape
  rest     // all words behind the last argument before it, whatever they begin with: words for a program of the user
};

struct Option {
  std::string name = {};     // "--budget"; a name without dashes, such as FILE, is an argument by its place
  char letter = 0;           // 'o': -o is the same option
  std::string metavar = {};  // stands for the value in the help; one with FILE in it is completed with names of files
  Target to = {};
  std::string help = {};      // sentences; shells show the first one
  std::string group = {};     // the heading in the help; empty: Options
  std::string fallback = {};  // the default, in words; empty: the help shows the value that the member begins with
  bool required = false;
  Several several = Several::again;
  std::vector<std::string> choices = {};          // all values that the option takes
  std::vector<std::string> (*words)() = nullptr;  // values that shells offer; the option also takes others
  double least = 0, most = 0;                     // of a number; no limits if both are 0
  std::string excludes = {};                      // the name of an option that cannot stand beside it
  std::string bare = {};                          // the value of the option if none of its choices follows
  // Receives the name of the option each time that it stands on the line. Options that share it are known in their order.
  std::vector<std::string>* turns = nullptr;
};

bool is_argument(const Option& option);  // FILE
bool is_flag(const Option& option);
bool is_list(const Option& option);
bool takes_rest(const Option& option);
bool takes_files(const Option& option);
std::string default_text(const Option& option);    // "42"; empty if there is nothing to say
std::string first_sentence(const Option& option);  // of the help, without its period

// The fault of one value as it was typed: "'best' is not one of none, regions, auto". Empty: no fault.
std::string fault_of(const Option& option, const std::string& text);

}  // namespace tapedeck::tool
