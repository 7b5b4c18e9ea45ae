// The manual page of the program, from the table of commands.
#pragma once

#include <string>

namespace tapedeck::tool {

// A page of section 1 in the language of man(7): every command with its options, sizes, exit codes and the environment.
std::string man_page();

}  // namespace tapedeck::tool
