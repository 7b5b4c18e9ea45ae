// The table of commands, by menu. A command calls a public function of the window or of its session.
#include <tapedeck/viewer/commands.h>

#include <tapedeck/viewer/command_palette.h>
#include <tapedeck/viewer/compare_window.h>
#include <tapedeck/viewer/key_sheet.h>
#include <tapedeck/viewer/live_commands.h>
#include <tapedeck/viewer/model/tool_command.h>
#include <tapedeck/viewer/node_search.h>
#include <tapedeck/viewer/panels/graph.h>
#include <tapedeck/viewer/panels/inspector.h>
#include <tapedeck/viewer/session_keeper.h>
#include <tapedeck/viewer/start/start_page.h>
#include <tapedeck/viewer/start/tour.h>
#include <tapedeck/viewer/window.h>

#include <tapedeck/engine/text/suggest.h>

#include <QtGui/QClipboard>
#include <QtGui/QGuiApplication>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QSlider>

#include <algorithm>
#include <iterator>
#include <utility>

namespace tapedeck::viewer {

namespace {

using Commands = std::vector<Command>;
using W = MainWindow;

constexpr double kZoomIn = 0.8, kZoomOut = 1.25;

Commands file_commands() {
  return {
      {"file.start", "Start page", "Ctrl+Home",
       "Show recent files, a sample, new recordings and imports over the panels, or the panels again.",
       [](W& w) { w.show_start_page(!w.start_page_is_shown()); }, false, false,
       [](const W& w) { return w.start_page_is_shown(); }},
      {"file.open", "Open…", "Ctrl+O", "Open a .tape or .graph file.", [](W& w) { w.ask_open(); }},
      {"file.import", "Import…", "", "Read a graph or a trace of another program, as `tapedeck import` does.",
       [](W& w) { w.start_page().ask_import(); }},
      {"file.compare", "Compare with…", "Ctrl+D",
       "Show this plan and the plan of another file side by side; without an open file, those of two files.",
       [](W& w) { w.ask_compare(); }},
      {"file.export-picture", "Export picture…", "Ctrl+E", "Write the window as PNG, SVG or PDF.", [](W& w) { w.ask_export(); },
       true},
      {"file.export-panel", "Export panel…", "Ctrl+Shift+E",
       "Write the panel that has the keyboard as PNG, SVG or PDF, or its numbers as CSV.", [](W& w) { w.ask_export_panel(); }},
      {"file.save-session", "Save session", "Ctrl+S",
       "Write budget, wishes, view, selection, tables and bookmarks beside the file; closing it does so after a change.",
       [](W& w) { w.keeper().save(); }, true},
      {"file.forget-session", "Forget session", "", "Remove the session of the file.", [](W& w) { w.keeper().forget(); }},
      {"file.quit", "Quit", "Ctrl+Q", "Close the window.", [](W& w) { w.close(); }, true},
  };
}

// The last three act on the newest window of a comparison, whose menu has them too.
Commands compare_commands_of_window() {
  const auto in_comparison = [](const char* id) {
    return [id](W& w) {
      if (!run_in_comparison(id)) w.say("No comparison is open: compare with the plan before, or with a file, first.");
    };
  };
  return {
      {"compare.plan-before", "With the plan before", "Ctrl+Shift+D",
       "Show the plan before the last change of budget or wishes and the plan now side by side, with what differs.",
       [](W& w) { w.compare_with_before(); }},
      {"compare.overlay", "One over the other", "Ctrl+Shift+O",
       "In a comparison: draw the left plan as outlines over the right one, or both side by side again.",
       in_comparison("compare.overlay"), true},
      {"compare.lock", "Move both sides together", "",
       "In a comparison: let a zoom or a move of one side be one of the other side too, or of its own alone.",
       in_comparison("compare.lock")},
      {"compare.swap", "Swap the sides", "", "In a comparison: put the left plan to the right.", in_comparison("compare.swap")},
  };
}

Commands view_commands() {
  Commands table = {
      {"view.back", "Back", "Alt+Left Backspace", "Show the part of the plan that was in view before.",
       [](W& w) { w.move_view(ViewMove::back); }},
      {"view.forward", "Forward", "Alt+Right", "Undo one step back in the views.",
       [](W& w) { w.move_view(ViewMove::forward); }},
      {"view.fit-all", "Fit all", "H", "Show the whole plan.", [](W& w) { w.move_view(ViewMove::fit_all); }, true},
      {"view.fit-selection", "Centre, then fit selection", "F",
       "Move the selected value to the centre; again: zoom so that it fills the view.",
       [](W& w) { w.move_view(ViewMove::fit_selection); }},
      {"view.clear-selection", "Clear selection", "Esc",
       "Select nothing; the details then show the whole plan. While a file is opened or a replay measured: cancel that. With "
       "nothing selected: end the tour.",
       [](W& w) {
         if (w.cancel_opening() || w.cancel_measuring() || w.cancel_recording()) return;
         if (w.session().selection().value == kNone && w.session().selection().node == kNone) w.tour().end();
         w.session().clear_selection();
       }},
  };
  const auto move = [&](const char* id, const char* title, const char* keys, const char* help, auto run, bool group = false) {
    table.push_back({id, title, keys, help, run, group, true});
  };
  move(
      "view.zoom-in", "Zoom in", "W + =", "Show a shorter time, around the cursor.",
      [](W& w) { w.move_view(ViewMove::zoom_in); }, true);
  move("view.zoom-out", "Zoom out", "S -", "Show a longer time, around the cursor.",
       [](W& w) { w.move_view(ViewMove::zoom_out); });
  move("view.zoom-addresses-in", "Zoom addresses in", "Shift+W", "Show fewer addresses.",
       [](W& w) { w.session().zoom(1, kZoomIn); });
  move("view.zoom-addresses-out", "Zoom addresses out", "Shift+S", "Show more addresses.",
       [](W& w) { w.session().zoom(1, kZoomOut); });
  move("view.earlier", "Earlier", "A Left", "Move towards the beginning of the schedule.",
       [](W& w) { w.move_view(ViewMove::left); });
  move("view.later", "Later", "D Right", "Move towards the end of the schedule.", [](W& w) { w.move_view(ViewMove::right); });
  move("view.higher", "Higher addresses", "Up", "Move towards higher addresses.", [](W& w) { w.move_view(ViewMove::up); });
  move("view.lower", "Lower addresses", "Down", "Move towards lower addresses.", [](W& w) { w.move_view(ViewMove::down); });
  table.push_back({"view.minimap", "Minimap", "M",
                   "Show the whole plan in a corner of the memory plan, while only a part of it is in view.",
                   [](W& w) { w.toggle_minimap(); }, true, false, [](const W& w) { return w.minimap_is_on(); }});
  table.push_back({"view.text-changes", "Changes in the text", "",
                   "Show in the text of the graph only what the chosen step changed, or the whole text again.",
                   [](W& w) {
                     w.show_panel("text");
                     w.text().show_changes(!w.text().shows_changes());
                   },
                   false, false, [](const W& w) { return w.text().shows_changes(); }});
  table.push_back({"view.more-threads", "More threads in the schedule", "",
                   "Show what the plan would do on one thread more, by the costs of the plan.",
                   [](W& w) { w.schedule().set_threads(w.schedule().threads() + 1); }, true});
  table.push_back({"view.fewer-threads", "Fewer threads in the schedule", "",
                   "Show what the plan would do on one thread less, by the costs of the plan.",
                   [](W& w) { w.schedule().set_threads(w.schedule().threads() - 1); }});
  table.push_back({"view.schedule-measured", "Measured schedule", "",
                   "Show the schedule that a replay of this plan had, if it was measured, or the planned one.",
                   [](W& w) { w.schedule().show_measured(!w.schedule().shows_measured()); }, false, false,
                   [](const W& w) { return w.schedule().shows_measured(); }});
  table.push_back(
      {"view.reset-layout", "Reset layout", "", "Put all panels where they were at first.", [](W& w) { w.reset_layout(); }});
  return table;
}

// The commands for the axis of time and the colours of the pictures.
Commands picture_commands() {
  Commands table;
  const auto colour = [&](ColourBy by, const char* title, const char* help) {
    table.push_back({"view.colour-by-" + std::string(colour_by_name(by)), title, "", help, [by](W& w) { w.set_colour_by(by); },
                     by == ColourBy::role, false, [by](const W& w) { return w.session().colour_by() == by; }});
  };
  colour(ColourBy::role, "Colour by role",
         "Colour values by what their bytes are for: saved, recomputed, a gradient, temporary.");
  colour(ColourBy::module, "Colour by module", "Colour values by the module of the model that computes them.");
  colour(ColourBy::op, "Colour by op", "Colour values by the op that computes them.");
  const auto axis = [&](TimeUnit unit, const char* id, const char* title, const char* help) {
    table.push_back({id, title, "", help, [unit](W& w) { w.set_time_unit(unit); }, unit == TimeUnit::nodes, false,
                     [unit](const W& w) { return w.session().time_unit() == unit; }});
  };
  axis(TimeUnit::nodes, "view.axis-nodes", "Axis in nodes", "Give every node the same width in the pictures.");
  axis(TimeUnit::us, "view.axis-time", "Axis in microseconds",
       "Make every node as wide in the pictures as the time that it takes.");
  return table;
}

// The titles and sentences of the themes, in the order of Theme.
constexpr std::pair<const char*, const char*> kThemeTexts[kThemeCount] = {
    {"Dark theme", "Show light text on dark grounds."},
    {"Light theme", "Show dark text on light grounds."},
    {"High contrast theme", "Show white and strong colours on black."}};

void step_scale(MainWindow& window, int steps) {
  const Look look = look_in_use();
  window.set_look({look.theme, stepped_scale(look.scale, steps)});
}

Commands look_commands() {
  Commands table;
  for (int i = 0; i < kThemeCount; ++i) {
    const auto theme = static_cast<Theme>(i);
    table.push_back({"view.theme-" + std::string(theme_name(theme)), kThemeTexts[i].first, "", kThemeTexts[i].second,
                     [theme](W& w) {
                       w.set_look({theme, look_in_use().scale});
                     },
                     i == 0, false, [theme](const W&) { return look_in_use().theme == theme; }});
  }
  table.push_back({"view.larger", "Larger", "Ctrl+= Ctrl++", "Show all texts and pictures larger, up to three times.",
                   [](W& w) { step_scale(w, 1); }, true});
  table.push_back({"view.smaller", "Smaller", "Ctrl+-", "Show all texts and pictures smaller, down to three quarters.",
                   [](W& w) { step_scale(w, -1); }});
  table.push_back({"view.normal-size", "Normal size", "Ctrl+0", "Show all texts and pictures at their normal size.", [](W& w) {
                     w.set_look({look_in_use().theme, 1});
                   }});
  return table;
}

// One command for each panel of the table of panels, and two that walk through them.
Commands panel_commands() {
  Commands table;
  for (const Panel& panel : all_panels()) {
    const std::string name = panel.name, title = panel.title;
    Command command{"panel." + name, title, "", "Show or hide the panel: " + std::string(panel.sentence),
                    [name](W& w) { w.toggle_panel(name); }};
    if (panel.place == PanelPlace::centre)
      command.help = "Give the keyboard to the panel: " + std::string(panel.sentence);
    else
      command.checked = [name](const W& w) { return w.panel_is_open(name); };
    table.push_back(std::move(command));
  }
  table.push_back({"panel.next", "Next panel", "F6", "Give the keyboard to the next panel that can be seen.",
                   [](W& w) { w.step_panel(1); }, true});
  table.push_back({"panel.previous", "Previous panel", "Shift+F6", "Give the keyboard to the panel before.",
                   [](W& w) { w.step_panel(-1); }});
  return table;
}

void move_slider(W& window, int steps) {
  if (window.session().model() != nullptr) window.slider().setValue(window.slider().value() + steps);
}

Commands budget_commands() {
  return {
      {"budget.less", "Less memory", "Ctrl+Down", "Lower the budget by a twentieth of its range and plan again.",
       [](W& w) { move_slider(w, -kBudgetSteps / 20); }},
      {"budget.more", "More memory", "Ctrl+Up", "Raise the budget by a twentieth of its range and plan again.",
       [](W& w) { move_slider(w, kBudgetSteps / 20); }},
      {"budget.floor", "Least memory", "Ctrl+Shift+Down", "Plan at the floor, the least peak that any strategy reaches.",
       [](W& w) { move_slider(w, -kBudgetSteps); }},
      {"budget.none", "No budget", "Ctrl+Shift+Up", "Plan without a budget: recompute only what checkpoint() asks for.",
       [](W& w) { w.set_budget({}); }, true},
  };
}

void copy(const std::string& text) { QGuiApplication::clipboard()->setText(QString::fromStdString(text)); }

void wish_for_selection(W& window, WishKind kind) {
  window.show_panel("recompute");
  QPushButton* button = kind == WishKind::keep ? window.recompute().keep_button() : window.recompute().recompute_button();
  if (button->isEnabled()) button->click();
}

Commands edit_commands() {
  return {
      {"edit.undo", "Undo wish", "Ctrl+Z", "Take the last wish for a value back and plan again.",
       [](W& w) {
         if (!w.undo()) w.say("There is no wish to take back.");
       }},
      {"edit.redo", "Redo wish", "Ctrl+Shift+Z Ctrl+Y", "Make the wish that was taken back again.",
       [](W& w) {
         if (!w.redo()) w.say("No wish was taken back.");
       }},
      {"edit.keep", "Must keep", "K", "Plan again so that the selected value is never computed again.",
       [](W& w) { wish_for_selection(w, WishKind::keep); }, true},
      {"edit.recompute", "Must recompute", "R", "Plan again so that the selected value is not kept between its readers.",
       [](W& w) { wish_for_selection(w, WishKind::recompute); }},
      {"edit.forget-wishes", "Forget all wishes", "", "Plan again without any wish for single values.",
       [](W& w) { w.set_wishes({}); }},
      {"edit.copy-tool-line", "Copy as tool command", "Ctrl+Shift+C",
       "Copy the line of the command-line tool that gives this plan, wishes included.", [](W& w) { copy(w.tool_line()); },
       true},
      {"edit.copy-cpp", "Copy wishes as C++", "", "Copy the wishes as an assignment to PlanOptions::wishes.",
       [](W& w) { copy(wishes_as_cpp(w.session().wishes())); }},
  };
}

// The transport of the inspector.
Commands step_commands() {
  const auto move = [](StepMove how) {
    return [how](W& w) {
      w.show_panel("inspector");
      w.inspector().move(how);
    };
  };
  return {
      {"replay.play", "Play or pause", "F5",
       "Run a step of the shown plan to its end in the inspector; while it runs, pause it behind a node.",
       [](W& w) {
         w.show_panel("inspector");
         w.inspector().play_or_pause();
       },
       true},
      {"replay.step", "Step", "F10", "Run the next node of the step, and show what it has made.", move(StepMove::next)},
      {"replay.back", "Step back", "Shift+F10", "Take the last node of the step back.", move(StepMove::back)},
      {"replay.to-selection", "Run to selection", "Ctrl+F10", "Run the step until the selected node has run, or go back to it.",
       move(StepMove::to_node)},
      {"replay.end", "End the step", "Shift+F5", "End the step of the inspector, and let go of its bytes.",
       [](W& w) { w.inspector().end(); }},
  };
}

Commands replay_commands() {
  return {
      {"replay.measure", "Measure this plan", "Ctrl+M",
       "Replay the shown plan some times, and draw what it held and how long it took beside what the plan says.",
       [](W& w) { w.measure(); }, true},
      {"replay.measure-curve", "Measure the tradeoff", "Ctrl+Shift+M",
       "Replay plans of several budgets in turn, and draw their times in the panel Tradeoff.", [](W& w) { w.measure_curve(); }},
      {"replay.profile", "Take a profile…", "", "Take the times of a file that tapedeck replay --profile --save wrote.",
       [](W& w) { w.ask_profile(); }},
      {"replay.cancel", "Cancel measuring", "", "Stop the replays that are being measured.", [](W& w) { w.cancel_measuring(); },
       true},
      {"replay.forget", "Forget measurements", "", "Show planned numbers only.", [](W& w) { w.forget_measurements(); }},
  };
}

Commands go_commands() {
  return {
      {"go.next-node", "Next node", ".", "Select the next node of the schedule.", [](W& w) { w.session().step_node(1); }},
      {"go.previous-node", "Previous node", ",", "Select the node before in the schedule.",
       [](W& w) { w.session().step_node(-1); }},
      {"go.producer", "Producer of the first operand", "[", "Select the node that made the first operand of the selected node.",
       [](W& w) { w.session().follow(false); }},
      {"go.reader", "First reader", "]", "Select the first node that reads the selected value.",
       [](W& w) { w.session().follow(true); }},
      {"go.peak", "The peak", "P", "Select the node at which most bytes are live.",
       [](W& w) {
         if (w.session().model() != nullptr) w.session().select_node(w.session().model()->peak_node());
       }},
      {"go.filter", "Filter nodes", "Ctrl+F", "Type a filter for the table of nodes.",
       [](W& w) {
         w.show_panel("nodes");
         w.nodes().filter()->setFocus();
       },
       true},
      {"go.find-text", "Find in the text", "Ctrl+Shift+F", "Look for a text in the text of the graph.",
       [](W& w) {
         w.show_panel("text");
         w.text().begin_find();
       }},
      {"go.next-change", "Next change of the text", "F8", "Show the next lines that the chosen step of the planner changed.",
       [](W& w) {
         w.show_panel("text");
         w.text().go_to_change(1);
       }},
      {"go.previous-change", "Previous change of the text", "Shift+F8", "Show the changed lines of the text before.",
       [](W& w) {
         w.show_panel("text");
         w.text().go_to_change(-1);
       }},
  };
}

void enter_region(W& w) {
  const bool in_memory = w.panel_has_keys("memory");
  if (!in_memory) w.show_panel("graph");
  if (!(in_memory ? w.memory().enter_selection() : w.graph().enter_selection()))
    w.say("Select a loop, a branch or a fused node first.");
}

// Leaves the region that the picture with the focus shows, or else the only one that is shown.
void leave_region(W& w) {
  if (w.memory().depth() > 0 && (w.panel_has_keys("memory") || w.graph().depth() == 0)) {
    w.memory().leave(w.memory().depth() - 1);
    return;
  }
  w.show_panel("graph");
  if (!w.graph().leave(w.graph().depth() - 1)) w.say("The graph of the step is shown already.");
}

// The commands of the graph. Each but those for regions opens the panel of the graph first.
Commands graph_commands() {
  const auto on_graph = [](void (GraphPanel::*what)()) {
    return [what](W& w) {
      w.show_panel("graph");
      (w.graph().*what)();
    };
  };
  const auto step = [](int by) {
    return [by](W& w) {
      w.show_panel("graph");
      w.graph().step_level(by);
    };
  };
  return {
      {"graph.find", "Find node or module…", "/", "Type letters of a value, an op or a module to show it in the graph.",
       [](W& w) { show_node_search(w); }},
      {"graph.reveal", "Show selection in the graph", "G", "Open the modules around the selected node in the graph.",
       on_graph(&GraphPanel::reveal_selection)},
      {"graph.toggle", "Open or close module", "O", "Open or close the module clicked last, or the one around the selection.",
       on_graph(&GraphPanel::toggle), true},
      {"graph.enter", "Open loop or branch", "I",
       "Draw the body of the selected loop, a branch or the inside of a fused node, in the memory plan if that has the focus, "
       "else in the graph; in there, the next region of the same node.",
       enter_region},
      {"graph.leave", "Leave loop or branch", "Shift+I",
       "Draw the graph or the memory plan around the body of the loop or the branch again.", leave_region},
      {"graph.open-level", "Open one level", "L", "Open all closed modules that the graph shows.", step(1)},
      {"graph.close-level", "Close one level", "Shift+L", "Close all modules of the graph in which no other is open.",
       step(-1)},
      {"graph.open-as-at-first", "Open as at first", "", "Open the modules that the graph opens by itself, and show it anew.",
       on_graph(&GraphPanel::open_as_at_first)},
  };
}

Commands bookmark_commands() {
  return {
      {"bookmark.add", "Add bookmark", "Ctrl+B", "Remember the part of the plan in view and the selection.",
       [](W& w) { w.keeper().add_bookmark(); }},
      {"bookmark.next", "Next bookmark", "F2", "Show the next bookmark of the file.",
       [](W& w) { w.keeper().step_bookmark(1); }},
      {"bookmark.previous", "Previous bookmark", "Shift+F2", "Show the bookmark before.",
       [](W& w) { w.keeper().step_bookmark(-1); }},
      {"bookmark.rename", "Rename bookmark…", "", "Give the bookmark that was added or shown last another name.",
       [](W& w) { w.keeper().ask_bookmark_name(); }, true},
      {"bookmark.remove", "Remove bookmark", "", "Remove the bookmark that was added or shown last.",
       [](W& w) { w.keeper().remove_bookmark(); }},
  };
}

// The commands for a running program. Each opens the window that watches one.
Commands live_commands() {
  return {
      {"live.watch", "Watch a running program…", "Ctrl+Shift+W",
       "List the programs that write a live view (TAPEDECK_VIEW=1), and watch one.", [](W& w) { show_live_window(w); }},
      {"live.capture", "Capture the next step", "Ctrl+Shift+S",
       "Ask the watched program for its next step as a file; without steps: begin a capture, or end it.",
       [](W& w) { show_live_window(w).capture(); }, true},
      {"live.follow", "Follow the program", "", "Keep the newest calls of the watched program in view, or stop that.",
       [](W& w) {
         LiveWindow& live = show_live_window(w);
         live.follow(!live.follows());
       },
       false, false, [](const W& w) { return live_window_of(w) != nullptr && live_window_of(w)->follows(); }},
  };
}

Commands help_commands() {
  return {
      {"help.commands", "Command palette", "Ctrl+Shift+P", "Find a command by typing letters of its name.",
       [](W& w) { show_command_palette(w); }},
      {"help.tour", "Take the tour", "",
       "Show step by step what the window can do, with the open file; without one, with a sample.",
       [](W& w) { w.begin_tour(); }},
      {"help.keys", "Keys", "F1 ?", "List all commands, their keys and what they do.", [](W& w) { show_key_sheet(w); }},
  };
}

}  // namespace

const std::vector<Command>& all_commands() {
  static const Commands commands = [] {
    Commands all;
    for (Commands (*part)() : {file_commands, edit_commands, view_commands, picture_commands, look_commands, panel_commands,
                               budget_commands, step_commands, replay_commands, go_commands, graph_commands,
                               compare_commands_of_window, bookmark_commands, live_commands, help_commands}) {
      Commands table = part();
      std::move(table.begin(), table.end(), std::back_inserter(all));
    }
    return all;
  }();
  return commands;
}

const Command* find_command(std::string_view id) {
  for (const Command& command : all_commands())
    if (command.id == id) return &command;
  return nullptr;
}

std::vector<std::string> keys_of(const Command& command) {
  std::vector<std::string> keys;
  for (std::size_t begin = 0; begin < command.keys.size();) {
    const std::size_t end = std::min(command.keys.find(' ', begin), command.keys.size());
    keys.push_back(command.keys.substr(begin, end - begin));
    begin = end + 1;
  }
  return keys;
}

std::string command_list() {
  std::size_t widest = 0;
  for (const Command& command : all_commands()) widest = std::max(widest, command.id.size());
  std::string list;
  for (const Command& command : all_commands()) {
    list += command.id + std::string(widest + 2 - command.id.size(), ' ') + command.help;
    list += command.keys.empty() ? "\n" : " Keys: " + command.keys + "\n";
  }
  return list;
}

bool parse_commands(const std::string& text, std::vector<const Command*>* commands, std::string* error) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string id = text.substr(begin, end - begin);
    const Command* command = find_command(id);
    if (command == nullptr) {
      std::vector<std::string_view> known;
      for (const Command& one : all_commands()) known.push_back(one.id);
      const std::string suggestion = did_you_mean(id, known);
      *error = "no command '" + id + "'" + (suggestion.empty() ? "; --commands lists them" : suggestion);
      return false;
    }
    commands->push_back(command);
    begin = end + 1;
  }
  return true;
}

}  // namespace tapedeck::viewer
