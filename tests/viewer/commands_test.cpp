// Tests the table of commands: that every command has its texts and its own keys, that real events run each of them, and that a
// key reaches the right widget.
#include <tapedeck/tests/viewer/compare/find_compare.h>
#include <tapedeck/tests/viewer/loops.h>
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/viewer/command_palette.h>
#include <tapedeck/viewer/commands.h>
#include <tapedeck/viewer/live_commands.h>
#include <tapedeck/viewer/options.h>
#include <tapedeck/viewer/panels/graph.h>
#include <tapedeck/viewer/panels/inspector.h>
#include <tapedeck/viewer/screenshot.h>
#include <tapedeck/viewer/session_keeper.h>
#include <tapedeck/viewer/start/tour.h>

#include <QtGui/QClipboard>
#include <QtWidgets/QDialog>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QTreeWidget>

#include <map>
#include <set>

namespace tapedeck::viewer {
namespace {

TEST(Commands, EachHasAnIdATitleASentenceAndItsOwnKeys) {
  std::set<std::string> ids, titles, keys;
  for (const Command& command : all_commands()) {
    EXPECT_TRUE(ids.insert(command.id).second) << command.id;
    EXPECT_EQ(std::count(command.id.begin(), command.id.end(), '.'), 1) << command.id;
    EXPECT_FALSE(command.title.empty()) << command.id;
    EXPECT_TRUE(titles.insert(command.title).second) << command.title;
    EXPECT_GE(command.help.size(), 12u) << command.id;
    EXPECT_TRUE(command.help.ends_with(".")) << command.id;
    EXPECT_TRUE(command.run) << command.id;
    for (const std::string& key : keys_of(command)) {
      const QKeySequence sequence(QString::fromStdString(key));
      ASSERT_EQ(sequence.count(), 1) << command.id << " " << key;
      EXPECT_NE(sequence[0].key(), Qt::Key_unknown) << command.id << " " << key;
      EXPECT_TRUE(keys.insert(sequence.toString().toStdString()).second) << command.id << " " << key;
    }
  }
  for (const Panel& panel : all_panels()) EXPECT_TRUE(ids.count("panel." + std::string(panel.name))) << panel.name;
}

TEST(Commands, TheListNamesAllAndAWrongIdIsAnErrorWithASuggestion) {
  for (const Command& command : all_commands()) EXPECT_NE(command_list().find(command.id), std::string::npos);
  std::vector<const Command*> commands;
  std::string error;
  ASSERT_TRUE(parse_commands("go.peak,view.fit-all", &commands, &error));
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_EQ(commands[1]->id, "view.fit-all");
  EXPECT_FALSE(parse_commands("view.fit-al", &commands, &error));
  EXPECT_NE(error.find("did you mean 'view.fit-all'"), std::string::npos) << error;
  EXPECT_FALSE(parse_commands("", &commands, &error));
  EXPECT_FALSE(parse_commands("go.peak,", &commands, &error));
}

class CommandWindow : public Window {
 protected:
  void SetUp() override {
    Window::SetUp();
    open_step();
    zoom_in();
  }
  void open_step() {
    if (window.session().document()->name != "step.graph") window.open(folder.file("step.graph"));
    window.set_budget({-1, 70});
    window.wait_for_plan();
  }
  void zoom_in() {
    Session& session = window.session();
    session.fit_all();
    session.select_value(value("h5"));
    session.zoom(0.5, 0.5);
    session.end_gesture();
  }

  // All that a command may change, as text.
  std::string state() {
    const Session& session = window.session();
    const PlanView& view = session.view;
    std::string text = "view " + std::to_string(view.time.low) + " " + std::to_string(view.time.high) + " " +
                       std::to_string(view.address.low) + " " + std::to_string(view.address.high);
    text += " selected " + std::to_string(session.selection().value) + " " + std::to_string(session.selection().node);
    text += " budget " + std::to_string(session.model()->plan().budget_bytes);
    text += std::string(" look ") + theme_name(look_in_use().theme) + " " + std::to_string(look_in_use().scale);
    for (const Wish& wish : session.wishes()) text += (wish.kind == WishKind::keep ? " keep " : " recompute ") + wish.pattern;
    text += std::string(" colours ") + colour_by_name(session.colour_by()) + " axis " +
            std::to_string(static_cast<int>(session.time_unit()));
    text += " clipboard " + QGuiApplication::clipboard()->text().toStdString();
    text += window.isVisible() ? " visible" : " closed";
    text += window.start_page_is_shown() ? " start" : "";
    text += " session " + window.keeper().written_path();
    for (const Bookmark& bookmark : window.keeper().bookmarks().all()) text += " bookmark " + bookmark.name;
    text += window.minimap_is_on() ? " minimap" : "";
    text += window.tour().runs() ? " tour" : "";
    for (const auto* dock : window.findChildren<QDockWidget*>())
      text += " " + dock->objectName().toStdString() + (dock->isHidden() ? " hidden" : " open");
    for (const auto* dialog : window.findChildren<QDialog*>())
      if (dialog->isVisible()) text += " dialog " + dialog->windowTitle().toStdString();
    if (open_palette(window) != nullptr) text += " palette";
    text += " graph";
    if (const OpenModules& open = window.graph().open_modules())
      for (const std::string& path : *open) text += " " + path;
    for (const RegionStep& step : window.graph().inside()) text += " in " + step.value;
    for (const RegionStep& step : window.memory().regions().path()) text += " memory in " + step.value;
    text += window.text().shows_changes() ? " changes" : "";
    text += " lanes " + std::to_string(window.schedule().threads()) + (window.schedule().shows_measured() ? " measured" : "");
    text += " row " + std::to_string(window.text().code().current_row());
    if (window.inspector().has_step()) text += " step " + std::to_string(window.inspector().at().done);
    text += window.inspector().moves() ? " moves" : "";
    if (QWidget* compare = find_compare(); is_compared(compare)) {
      const CompareLook& look = compare_picture(*compare).look();
      text += std::string(" compare") + (look.overlay ? " overlay" : "") + (look.locked ? " locked" : "") +
              (look.swapped ? " swapped" : "");
    } else if (compare != nullptr)
      text += " comparing";
    text += session.measuring() ? " measuring" : "";
    text += live_window_of(window) != nullptr ? " live" : "";
    text += session.measurements().empty() ? "" : " measured";
    return text + " focus " + focused_panel();
  }
  std::string focused_panel() const {
    for (const Panel& panel : all_panels()) {
      const QWidget* widget = window.panel(panel.name).widget;
      if (widget == window.focusWidget() || widget->isAncestorOf(window.focusWidget())) return panel.name;
    }
    return "none";
  }

  // Runs a command as a person does: by its first key, or by the palette if it has none.
  void run_by_keys(const Command& command) {
    const std::vector<std::string> keys = keys_of(command);
    if (!keys.empty()) {
      press(QKeySequence(QString::fromStdString(keys[0]))[0]);
    } else {
      press(QKeyCombination(Qt::ControlModifier | Qt::ShiftModifier, Qt::Key_P));
      type(window, command.id);
      press(Qt::Key_Return);
    }
    window.wait_for_plan();
  }
  void press(QKeyCombination key) { viewer::press(window, key.key(), key.keyboardModifiers()); }

  QTreeWidget* palette_list() { return open_palette(window)->findChild<QTreeWidget*>(); }
  std::string first_found() { return palette_list()->topLevelItem(0)->data(0, Qt::UserRole).toString().toStdString(); }
};

void add_bookmark_elsewhere(MainWindow& window) {
  window.session().select_node(2);
  window.keeper().add_bookmark();
  window.session().select_node(9);
}

void show_graph(MainWindow& window) {
  window.graph().set_open_modules(std::nullopt);
  window.show_panel("graph");
  EXPECT_TRUE(spin_until([&] { return window.graph().settled(); }));
}

void show_graph_with_an_open_module(MainWindow& window) {
  window.graph().set_open_modules(std::set<std::string>{"layer3"});
  window.show_panel("graph");
  EXPECT_TRUE(spin_until([&] { return window.graph().settled(); }));
}

void show_graph_with_a_loop(MainWindow& window) {
  const Folder folder;
  window.open(folder.write("loops.graph", graph_with_loops()));
  window.wait_for_plan();
  show_graph(window);
  const Graph& graph = window.session().model()->graph();
  for (NodeId n = 0; n < graph.node_count(); ++n)
    if (graph.nodes[static_cast<std::size_t>(n)].n_regions > 0) window.session().select_node(n);
}

void show_body_of_a_loop(MainWindow& window) {
  show_graph_with_a_loop(window);
  EXPECT_TRUE(window.graph().enter_selection());
  EXPECT_TRUE(spin_until([&] { return window.graph().settled(); }));
}

void wait_for_step(MainWindow& window) {
  EXPECT_TRUE(spin_until([&] { return window.inspector().settled(); }));
}

void take_a_step(MainWindow& window) {
  wait_for_step(window);
  window.inspector().move(StepMove::next);
  wait_for_step(window);
}

void show_first_change(MainWindow& window) {
  window.show_panel("text");
  EXPECT_TRUE(spin_until([&] { return window.text().settled(); }));
  window.text().choose_step(static_cast<int>(window.text().texts().size()) - 1);
  window.text().show_changes(true);
  window.text().code().go_to_row(0);
}

void open_comparison(MainWindow& w) {
  w.set_budget({-1, 80});
  w.wait_for_plan();
  w.set_budget({-1, 70});
  w.wait_for_plan();
  w.compare_with_before();
  spin_until([] { return is_compared(find_compare()); });
  settle(compare_canvas(*find_compare()));
  w.activateWindow();
  spin_until([&] { return QApplication::activeWindow() == &w; });
}

// The preparations of the commands that would else find nothing to do.
std::map<std::string, std::function<void(MainWindow&)>> preparations() {
  return {
      {"view.forward", [](MainWindow& w) { w.session().view_back(); }},
      {"view.theme-dark",
       [](MainWindow& w) {
         w.set_look({Theme::light, 1});
       }},
      {"view.colour-by-role", [](MainWindow& w) { w.set_colour_by(ColourBy::op); }},
      {"view.colour-by-op", [](MainWindow& w) { w.set_colour_by(ColourBy::role); }},
      {"view.axis-nodes", [](MainWindow& w) { w.set_time_unit(TimeUnit::us); }},
      {"view.normal-size",
       [](MainWindow& w) {
         w.set_look({Theme::dark, 1.5});
       }},
      {"edit.undo",
       [](MainWindow& w) {
         w.set_wishes({{WishKind::keep, "h3"}});
       }},
      {"edit.redo",
       [](MainWindow& w) {
         w.set_wishes({{WishKind::keep, "h4"}});
         w.undo();
       }},
      {"edit.keep", [](MainWindow& w) { w.wait_for_plan(); }},
      {"edit.recompute", [](MainWindow& w) { w.wait_for_plan(); }},
      {"edit.forget-wishes",
       [](MainWindow& w) {
         w.set_wishes({{WishKind::keep, "h6"}});
       }},
      {"view.reset-layout", [](MainWindow& w) { w.toggle_panel("curve"); }},
      {"panel.memory", [](MainWindow& w) { w.nodes().table()->setFocus(); }},
      {"budget.less", [](MainWindow& w) { w.slider().setValue(kBudgetSteps / 2); }},
      {"replay.cancel", [](MainWindow& w) { w.measure(); }},
      {"replay.forget",
       [](MainWindow& w) {
         Measurements measured;
         measured.set_points({MeasuredPoint{}});
         w.session().set_measurements(measured);
       }},
      {"graph.reveal", show_graph},
      {"graph.toggle", show_graph},
      {"graph.enter", show_graph_with_a_loop},
      {"graph.leave", show_body_of_a_loop},
      {"graph.open-level", show_graph},
      {"graph.close-level", show_graph_with_an_open_module},
      {"graph.open-as-at-first", show_graph_with_an_open_module},
      {"replay.step", wait_for_step},
      {"replay.to-selection",
       [](MainWindow& w) {
         w.session().select_node(3);
         wait_for_step(w);
       }},
      {"replay.back", take_a_step},
      {"replay.end", take_a_step},
      {"view.fewer-threads", [](MainWindow& w) { w.schedule().set_threads(4); }},
      {"go.next-change", show_first_change},
      {"go.previous-change",
       [](MainWindow& w) {
         show_first_change(w);
         w.text().code().go_to_row(w.text().code().rows().count() - 1);
       }},
      {"compare.plan-before",
       [](MainWindow& w) {
         w.set_budget({-1, 80});
         w.wait_for_plan();
         w.set_budget({-1, 70});
       }},
      {"compare.overlay", open_comparison},
      {"compare.lock", open_comparison},
      {"compare.swap", open_comparison},
      {"go.producer", [](MainWindow& w) { w.session().select_node(3); }},
      {"file.save-session", [](MainWindow& w) { w.keeper().forget(); }},
      {"file.forget-session", [](MainWindow& w) { w.keeper().save(); }},
      {"bookmark.next", add_bookmark_elsewhere},
      {"bookmark.previous", add_bookmark_elsewhere},
      {"bookmark.rename", [](MainWindow& w) { w.keeper().add_bookmark(); }},
      {"bookmark.remove", [](MainWindow& w) { w.keeper().add_bookmark(); }},
  };
}

TEST_F(CommandWindow, EachIsRunByKeysAndDoesSomething) {
  auto prepare = preparations();
  for (const Command& command : all_commands()) {
    activate();
    window.memory_canvas().setFocus();
    zoom_in();
    if (prepare.count(command.id)) prepare[command.id](window);
    window.wait_for_plan();
    const std::string before = state();
    run_by_keys(command);
    EXPECT_NE(state(), before) << command.id;
    for (auto* dialog : window.findChildren<QDialog*>()) dialog->close();
    if (QWidget* palette = open_palette(window)) palette->close();
    if (LiveWindow* live = live_window_of(window)) live->close();
    QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
    if (QWidget* compare = find_compare()) compare->close();
    QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
    window.cancel_measuring();
    window.show_start_page(false);
    window.tour().end();
    window.set_look({});
    if (window.session().document()->name != "step.graph") open_step();
    if (find_panel(command.id.substr(6)) != nullptr) window.show_panel(command.id.substr(6));
  }
}

TEST_F(CommandWindow, TheMenusHaveAllCommands) {
  std::set<std::string> titles;
  for (const auto* menu : window.menuBar()->findChildren<QMenu*>())
    for (const QAction* action : menu->actions()) titles.insert(action->text().toStdString());
  for (const Command& command : all_commands()) EXPECT_TRUE(titles.count(command.title)) << command.title;
}

TEST_F(CommandWindow, TheSheetListsAllCommandsWithTheirKeys) {
  type(window, "?");
  const auto* sheet = window.findChild<QDialog*>(QStringLiteral("keys"));
  ASSERT_NE(sheet, nullptr);
  const QString text = sheet->findChild<QTextBrowser*>()->toPlainText();
  for (const Command& command : all_commands()) EXPECT_TRUE(text.contains(QString::fromStdString(command.help))) << command.id;
  EXPECT_TRUE(text.contains(QStringLiteral("Ctrl+Shift+P")));
}

TEST_F(CommandWindow, ThePaletteFindsAsLettersAreTypedAndEnterRuns) {
  press(QKeyCombination(Qt::ControlModifier | Qt::ShiftModifier, Qt::Key_P));
  ASSERT_NE(open_palette(window), nullptr);
  EXPECT_EQ(static_cast<std::size_t>(palette_list()->topLevelItemCount()), all_commands().size());
  type(window, "f");
  const int with_f = palette_list()->topLevelItemCount();
  EXPECT_LT(static_cast<std::size_t>(with_f), all_commands().size());
  type(window, "ita");
  EXPECT_LT(palette_list()->topLevelItemCount(), with_f);
  EXPECT_EQ(first_found(), "view.fit-all");
  press(Qt::Key_Return);
  EXPECT_EQ(open_palette(window), nullptr);
  EXPECT_EQ(window.session().view, window.session().model()->home());
  EXPECT_EQ(window.session().selection().value, value("h5"));  // the letters were no shortcuts
}

TEST_F(CommandWindow, ThePaletteIsMovedThroughByArrowsAndClosedByEscape) {
  press(QKeyCombination(Qt::ControlModifier | Qt::ShiftModifier, Qt::Key_P));
  for (int i = 0; i < 3; ++i) press(Qt::Key_Down);
  press(Qt::Key_Up);
  EXPECT_EQ(palette_list()->indexOfTopLevelItem(palette_list()->currentItem()), 2);
  type(window, "no such command");
  EXPECT_EQ(palette_list()->topLevelItemCount(), 0);
  press(Qt::Key_Return);  // nothing to run
  EXPECT_NE(open_palette(window), nullptr);
  press(Qt::Key_Escape);
  EXPECT_EQ(open_palette(window), nullptr);
  EXPECT_EQ(window.focusWidget(), &window.memory_canvas());
  EXPECT_EQ(window.session().selection().value, value("h5"));  // Esc did not clear the selection
}

TEST_F(CommandWindow, KeysMoveThePicturesBeforeAnyClick) {
  const PlanView before = window.session().view;
  type(window, "d");
  EXPECT_GT(window.session().view.time.low, before.time.low);
  press(Qt::Key_Left);
  EXPECT_EQ(window.session().view.time.low, before.time.low);
  type(window, "+");
  EXPECT_LT(window.session().view.time.size(), before.time.size());
  press(Qt::Key_Up);
  EXPECT_GT(window.session().view.address.low, before.address.low);
}

TEST_F(CommandWindow, ATextFieldAndATableKeepTheirKeys) {
  const PlanView before = window.session().view;
  window.nodes().filter()->setFocus();
  type(window, "was+-?fhp.,");
  press(Qt::Key_Backspace);
  press(Qt::Key_Left);
  EXPECT_EQ(window.nodes().filter()->text(), QStringLiteral("was+-?fhp."));
  EXPECT_EQ(window.session().view, before);
  window.nodes().filter()->clear();
  window.nodes().table()->setFocus();
  window.session().select_node(4);
  press(Qt::Key_Down);
  EXPECT_EQ(window.session().selection().node, 5);
  press(Qt::Key_Up);
  EXPECT_EQ(window.session().selection().node, 4);
  EXPECT_EQ(window.session().view, before);
  type(window, "h");  // not a key of the table
  EXPECT_NE(window.session().view, before);
}

TEST_F(CommandWindow, TheKeyboardReachesEveryPanelThatCanBeSeen) {
  std::vector<std::string> seen;
  for (const Panel& panel : all_panels())
    if (!window.panel(panel.name).widget->visibleRegion().isEmpty()) seen.push_back(panel.name);
  ASSERT_GE(seen.size(), 4u);
  EXPECT_EQ(focused_panel(), seen[0]);
  for (std::size_t i = 1; i <= seen.size(); ++i) {
    press(Qt::Key_F6);
    EXPECT_EQ(focused_panel(), seen[i % seen.size()]);
  }
  press(QKeyCombination(Qt::ShiftModifier, Qt::Key_F6));
  EXPECT_EQ(focused_panel(), seen.back());
}

TEST_F(CommandWindow, BackAndForwardGoThroughTheViews) {
  Session& session = window.session();
  const PlanView start = session.view;
  settle_all();
  const ImVec2 middle = window.curve().place_of(40);
  wheel(window.curve_canvas(), middle, 1);
  wheel(window.curve_canvas(), middle, 1);  // the same gesture
  const PlanView wheeled = session.view;
  type(window, "h");
  EXPECT_NE(wheeled, start);
  press(QKeyCombination(Qt::AltModifier, Qt::Key_Left));
  EXPECT_EQ(session.view, wheeled);
  press(Qt::Key_Backspace);
  EXPECT_EQ(session.view, start);
  press(QKeyCombination(Qt::AltModifier, Qt::Key_Right));
  EXPECT_EQ(session.view, wheeled);
}

TEST(RunOption, CommandsChangeThePicture) {
  Folder folder;
  Options options;
  options.file = folder.write("step.graph", training_graph(12));
  options.width = 900;
  options.height = 600;
  std::string error, plain;
  for (const char* ids : {"", "view.fit-all", "view.zoom-in,go.peak", "help.commands", "budget.less,budget.less"}) {
    options.run.clear();
    options.shot = folder.file("shot.png");
    ASSERT_TRUE(*ids == '\0' || parse_commands(ids, &options.run, &error)) << error;
    ASSERT_EQ(take_shot(options), kOk) << ids;
    const std::string bytes = read(options.shot);
    if (*ids == '\0') plain = bytes;
    EXPECT_EQ(bytes == plain, *ids == '\0' || std::string(ids) == "view.fit-all") << ids;
  }
}

TEST(RunOption, IsParsedWithTheOtherOptions) {
  Options options;
  std::string error;
  EXPECT_TRUE(parse_options({"a.tape", "--run", "view.fit-all,go.peak", "--shot", "x.png"}, &options, &error)) << error;
  EXPECT_EQ(options.run.size(), 2u);
  for (const std::vector<std::string>& bad : {std::vector<std::string>{"a", "--run", "view.fitall"},
                                              {"--run", "view.fit-all"},
                                              {"a", "--run="},
                                              {"a", "--compare", "b", "--run", "go.peak"}}) {
    options = {};
    EXPECT_FALSE(parse_options(bad, &options, &error));
  }
  options = {};
  EXPECT_FALSE(parse_options({"a", "--shot", "x.gif"}, &options, &error));
  EXPECT_NE(error.find(".png, .svg or .pdf"), std::string::npos) << error;
}

}  // namespace
}  // namespace tapedeck::viewer
