// The table of commands. The menus, the palette, the shortcuts, the sheet of keys and the option --run read it and nothing
// else.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck::viewer {

class MainWindow;

// One command of the window.
struct Command {
  std::string id;     // "view.fit-all": the menu and the name in it
  std::string title;  // in the menu and the palette; it ends with … if a dialog follows
  std::string keys;   // the shortcuts with spaces between them, the first one is shown; empty: none
  std::string help;   // one sentence
  std::function<void(MainWindow&)> run;
  bool group = false;     // a line stands above it in the menu
  bool pictures = false;  // the keys move in a picture: a table or a slider with the focus keeps them for itself
  std::function<bool(const MainWindow&)> checked = {};  // of a command that switches something: is it on?
};

const std::vector<Command>& all_commands();          // in the order of the menus
const Command* find_command(std::string_view id);    // null if there is none
std::vector<std::string> keys_of(const Command& c);  // {"W", "+", "="}

// The table as text: one line per command.
std::string command_list();
// Parses "ID,ID,..." of --run. Returns false and sets `error`, one line, if a command does not exist.
bool parse_commands(const std::string& text, std::vector<const Command*>* commands, std::string* error);

}  // namespace tapedeck::viewer
