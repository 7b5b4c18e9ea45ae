// Tests sessions in the window, with real events: what a person set up is there again when the file is opened again; files that
// were only looked at get none; bad sessions never stop a file from opening.
#include <tapedeck/tests/viewer/compare/find_compare.h>
#include <tapedeck/tests/viewer/loops.h>
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/capture/formats/file_calls.h>
#include <tapedeck/viewer/options.h>
#include <tapedeck/viewer/panels/graph.h>
#include <tapedeck/viewer/plan/tables.h>
#include <tapedeck/viewer/saved/saved_place.h>
#include <tapedeck/viewer/screenshot.h>
#include <tapedeck/viewer/session_keeper.h>
#include <tapedeck/viewer/settings.h>
#include <tapedeck/viewer/signed_layout.h>

#include <QtCore/QMimeData>
#include <QtCore/QUrl>
#include <QtGui/QDropEvent>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QInputDialog>
#include <QtWidgets/QMenu>
#include <QtWidgets/QPushButton>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck::viewer {
namespace {

class SessionWindow : public ::testing::Test {
 protected:
  SessionWindow() : path(folder.write("step.graph", training_graph(8))) {}
  ~SessionWindow() override { std::filesystem::remove_all(own_session_folder()); }

  // Opens the file in a new window, as the program does.
  void open(Sessions sessions = Sessions::read_and_write) {
    window = std::make_unique<MainWindow>(
        MainWindow::Setup{.renderer = Renderer::soft, .remember = false, .prepares = false, .sessions = sessions});
    window->resize(1200, 700);
    window->show();
    activate();
    reopen();
    settle_all();
  }
  void activate() {
    window->activateWindow();
    ASSERT_TRUE(spin_until([&] { return window->isActiveWindow() && QApplication::activePopupWidget() == nullptr; }));
  }
  void reopen() { open_file(path); }
  void open_file(const std::string& file, const Budget& budget = {}) {
    window->start_opening(file, budget);
    ASSERT_TRUE(spin_until([&] { return !window->opening() && window->session().model() && !window->session().solving(); }));
  }
  void settle_all() {
    for (Canvas* canvas : {&window->memory_canvas(), &window->curve_canvas()})
      if (canvas->isVisible()) settle(*canvas);
  }
  void plan() {
    window->wait_for_plan();
    settle_all();
  }
  void close() {
    window->close();
    window.reset();
  }
  std::string session_path() const { return path + ".session"; }
  bool has_file() const { return std::filesystem::exists(session_path()); }
  ValueId value(const std::string& name) {
    const PlanModel& model = *window->session().model();
    for (const ValueEntry& e : model.values().log())
      if (e.name == name) return e.copies[0];
    return kNone;
  }
  void key(int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) { press(*window, key, modifiers); }

  void click_header(TablePanel& table, int column) {
    QHeaderView& header = *table.table()->header();
    QWidget& viewport = *header.viewport();
    const QPointF p(header.sectionViewportPosition(column) + header.sectionSize(column) / 2.0, viewport.height() / 2.0);
    for (const QEvent::Type type : {QEvent::MouseButtonPress, QEvent::MouseButtonRelease}) {
      QMouseEvent event(type, p, viewport.mapToGlobal(p), Qt::LeftButton,
                        type == QEvent::MouseButtonPress ? Qt::LeftButton : Qt::NoButton, Qt::NoModifier);
      QApplication::sendEvent(&viewport, &event);
    }
  }
  // Chooses an entry of the menu that a right click on the header opens.
  void toggle_column(TablePanel& table, const std::string& title) {
    QHeaderView& header = *table.table()->header();
    Q_EMIT header.customContextMenuRequested(QPoint(5, 5));
    auto* menu = table.findChild<QMenu*>();
    ASSERT_NE(menu, nullptr);
    for (QAction* action : menu->actions())
      if (action->text().toStdString() == title) action->trigger();
    menu->close();
  }
  void mark_range() {
    Canvas& canvas = window->curve_canvas();
    send_mouse(canvas, QEvent::MouseMove, window->curve().place_of(12));
    send_mouse(canvas, QEvent::MouseButtonPress, window->curve().place_of(12), Qt::LeftButton);
    settle(canvas);
    for (const NodeId n : {14, 17, 20}) {
      send_mouse(canvas, QEvent::MouseMove, window->curve().place_of(n));
      settle(canvas);
    }
    send_mouse(canvas, QEvent::MouseButtonRelease, window->curve().place_of(20), Qt::LeftButton);
    settle(canvas);
  }
  // Qt's text of a layout has minimum sizes too, which change with the texts in the panels.
  static SavedSession without_layout(SavedSession session) {
    session.layout.clear();
    return session;
  }
  // Which docks can be seen, and where.
  std::string docks() const {
    QCoreApplication::processEvents();
    std::string text;
    for (const Panel& panel : all_panels()) {
      const QWidget* dock = window->panel(panel.name).dock;
      if (dock == nullptr || !dock->isVisible() || window->panel(panel.name).widget->visibleRegion().isEmpty()) continue;
      const QRect at = dock->geometry();
      text += std::string(panel.name) + " at " + std::to_string(at.x() / 16) + "," + std::to_string(at.y() / 16) + " ";
    }
    return text;
  }
  // Changes everything that a session keeps.
  void set_everything_up() {
    window->slider().setValue(kBudgetSteps / 3);
    plan();
    window->session().select_value(value("h5"));
    key(Qt::Key_K);
    plan();
    ASSERT_EQ(window->session().wishes().size(), 1u);
    mark_range();
    ASSERT_FALSE(window->session().range().empty());
    wheel(window->memory_canvas(), *window->memory().place_of(value("h3")), 3);
    wheel(window->memory_canvas(), *window->memory().place_of(value("h3")), 2, Qt::AltModifier);
    window->session().end_gesture();
    key(Qt::Key_B, Qt::ControlModifier);
    click(window->memory_canvas(), *window->memory().place_of(value("h3")));
    EXPECT_EQ(window->session().selection().value, value("h3"));
    key(Qt::Key_B, Qt::ControlModifier);
    window->nodes().filter()->setFocus();
    type(*window, "op:opaque us>10");
    click_header(window->nodes(), layout_of(TableId::nodes).column("bytes"));
    toggle_column(window->nodes(), "phase");
    window->nodes().table()->header()->resizeSection(layout_of(TableId::nodes).column("op"), 123);
    window->nodes().table()->header()->moveSection(1, 3);
    window->toggle_panel("curve");
  }

  Folder folder;
  std::string path;
  std::unique_ptr<MainWindow> window;
};

TEST_F(SessionWindow, EverythingIsThereAgain) {
  open();
  set_everything_up();
  const Plan before = window->session().model()->plan();
  const SavedSession saved = window->keeper().now();
  ASSERT_EQ(saved.bookmarks.size(), 2u);
  EXPECT_NE(saved.bookmarks[0], saved.bookmarks[1]);
  EXPECT_TRUE(saved.place.view && !saved.range.empty());
  const std::string docks_before = docks();
  activate();  // the menu of the header took the keys
  key(Qt::Key_Q, Qt::ControlModifier);
  EXPECT_FALSE(window->isVisible());
  ASSERT_TRUE(has_file());
  window.reset();

  open();
  EXPECT_EQ(without_layout(window->keeper().now()), without_layout(saved));
  EXPECT_EQ(docks(), docks_before);
  EXPECT_EQ(window->session().model()->plan().peak_bytes, before.peak_bytes);
  EXPECT_EQ(window->session().model()->plan().cost_us, before.cost_us);
  EXPECT_EQ(window->session().asked_budget(), before.budget_bytes);
  EXPECT_EQ(window->session().selection().value, value("h3"));
  EXPECT_EQ(window->nodes().filter()->text(), QStringLiteral("op:opaque us>10"));
  EXPECT_FALSE(window->panel_is_open("curve"));
  EXPECT_TRUE(window->keeper().message().empty()) << window->keeper().message();
  close();
  EXPECT_EQ(read_session(read(session_path())).bookmarks, saved.bookmarks);
}

// The body of the scan in the memory plan, zoomed, and a branch in the graph, each with a value selected.
TEST_F(SessionWindow, OpenRegionsAndTheirSelectionsAreThereAgain) {
  path = folder.write("loops.graph", graph_with_loops());
  const auto settled = [&] {
    return window->memory().regions().settled() && window->graph().settled() && window->memory_canvas().settled() &&
           window->panel("graph").canvas->settled();
  };
  const auto inside = [&](const std::string& name) {
    const Graph& graph = window->memory().regions().session().model()->graph();
    for (ValueId v = 0; v < graph.value_count(); ++v)
      if (graph.value_name(v) == name) return v;
    return kNone;
  };
  open();
  window->show_panel("graph");
  window->session().select_value(value("y"));
  ASSERT_TRUE(window->memory().enter_selection());
  window->session().select_value(value("b"));
  ASSERT_TRUE(spin_until(settled));
  ASSERT_TRUE(window->graph().enter_selection());
  ASSERT_TRUE(spin_until(settled));
  click(window->memory_canvas(), *window->memory().place_of(inside("m")));
  wheel(window->memory_canvas(), *window->memory().place_of(inside("m")), 2);
  click(*window->panel("graph").canvas, *window->graph().place_of(window->graph().scene()->layout.box_of_node[0]));
  ASSERT_TRUE(spin_until(settled));
  const SavedSession saved = window->keeper().now();
  EXPECT_EQ(saved.memory_region.path, (RegionPath{{"y", 0}}));
  EXPECT_EQ(saved.memory_region.place.value, "m");
  EXPECT_TRUE(saved.memory_region.place.view);
  EXPECT_EQ(saved.graph_region.path, (RegionPath{{"b", 0}}));
  EXPECT_EQ(saved.graph_region.place.value, "r");
  close();

  open();
  ASSERT_TRUE(spin_until(settled));
  EXPECT_EQ(window->memory().regions().path(), saved.memory_region.path);
  EXPECT_EQ(window->memory().regions().session().selection().value, inside("m"));
  EXPECT_EQ(window->memory().regions().session().view, *saved.memory_region.place.view);
  EXPECT_EQ(window->graph().inside(), saved.graph_region.path);
  EXPECT_EQ(window->keeper().now().memory_region, saved.memory_region);
  EXPECT_EQ(window->keeper().now().graph_region, saved.graph_region);
  const std::string bytes = read(session_path());
  window->memory().leave(0);  // a person goes elsewhere, and stays there in another plan
  plan();
  EXPECT_EQ(window->memory().depth(), 0u);
  close();
  EXPECT_TRUE(read_session(read(session_path())).memory_region.path.empty());
  EXPECT_EQ(read_session(read(session_path())).graph_region, read_session(bytes).graph_region);
}

// A file whose graph changed may not have the region any more.
TEST_F(SessionWindow, ARegionThatIsGoneIsLeftOut) {
  path = folder.write("loops.graph", graph_with_loops());
  open();
  window->session().select_value(value("y"));
  ASSERT_TRUE(window->memory().enter_selection());
  ASSERT_TRUE(spin_until([&] { return window->memory().regions().region() != nullptr; }));
  close();
  ASSERT_TRUE(has_file());
  std::string text = graph_with_loops();
  text.replace(text.find("trips=100"), 9, "trips=101");
  for (const std::string& graph : {text, training_graph(4)}) {
    folder.write("loops.graph", graph);
    open(Sessions::read);
    EXPECT_TRUE(spin_until([&] { return window->memory().regions().settled(); }));
    EXPECT_EQ(window->memory().depth(), graph == text ? 1u : 0u);
    close();
  }
}

TEST_F(SessionWindow, AFileThatIsOnlyLookedAtGetsNoSession) {
  open();
  window->nodes().table()->header()->resizeSection(1, 99);  // the settings keep this
  window->toggle_panel("curve");
  const std::string other = folder.write("other.graph", training_graph(3));
  open_file(other);
  close();
  EXPECT_FALSE(has_file());
  EXPECT_FALSE(std::filesystem::exists(other + ".session"));
}

TEST_F(SessionWindow, ABudgetOfTheCommandLineWinsAndIsNoChange) {
  open();
  window->slider().setValue(kBudgetSteps / 2);
  plan();
  close();
  const std::string bytes = read(session_path());
  open();
  open_file(path, {-1, 90});
  EXPECT_EQ(window->budget(), (Budget{-1, 90}));
  close();
  EXPECT_EQ(read(session_path()), bytes);
}

TEST_F(SessionWindow, ABudgetInBytesStandsInTheBarAtOnce) {
  open(Sessions::off);
  const std::int64_t bytes = window->session().model()->plan().keep_all_peak_bytes * 3 / 4;
  open_file(path, {bytes, -1});
  EXPECT_EQ(window->session().asked_budget(), bytes);
  EXPECT_EQ(window->slider().value(), window->budget_scale().step_of(bytes));
  EXPECT_NE(window->tool_line().find("--budget " + std::to_string(bytes)), std::string::npos) << window->tool_line();
}

TEST_F(SessionWindow, IsWrittenWhenAnotherFileOrTheSameIsOpened) {
  open();
  window->session().select_value(value("h7"));
  reopen();
  EXPECT_TRUE(has_file());
  EXPECT_EQ(window->session().selection().value, value("h7"));
  window->session().select_value(value("h8"));
  open_file(folder.write("other.graph", training_graph(3)));
  EXPECT_EQ(read_session(read(session_path())).place.value, "h8");
  EXPECT_EQ(window->session().selection().value, kNone);
}

TEST_F(SessionWindow, IsSavedAndForgottenByCommands) {
  open();
  key(Qt::Key_S, Qt::ControlModifier);
  EXPECT_TRUE(has_file());
  EXPECT_EQ(window->keeper().written_path(), session_path());
  window->run({find_command("file.forget-session")});
  EXPECT_FALSE(has_file());
  close();
  EXPECT_FALSE(has_file());
}

TEST_F(SessionWindow, BadSessionsStopNothingAndStay) {
  const std::vector<std::string> bad = {"",
                                        "nonsense",
                                        "{\"tapedeck_session\":1,\"budget\":{\"percent\":\"nan\"}}",
                                        "{\"tapedeck_session\":77}",
                                        "{\"tapedeck_session\":1,\"place\":{\"view\":{\"time\":[1e308,1],\"address\":[0,1]}}}",
                                        std::string(kMostSessionBytes + 1, ' ')};
  open();
  for (const std::string& text : bad) {
    folder.write("step.graph.session", text);
    reopen();
    EXPECT_NE(window->keeper().message().find("is ignored"), std::string::npos) << text.substr(0, 80);
    EXPECT_EQ(window->session().view, window->session().model()->home());
    window->session().select_value(value("h3"));
    reopen();  // a change writes nothing over a file that is no session of this viewer
    EXPECT_EQ(read(session_path()), text);
  }
  key(Qt::Key_S, Qt::ControlModifier);
  EXPECT_EQ(read_session(read(session_path())), read_session(session_text(read_session(read(session_path())))));
  reopen();
  EXPECT_TRUE(window->keeper().message().empty()) << window->keeper().message();
}

// Numbers and names that a viewer could have written, but of another plan: they are moved into this one or left out.
TEST_F(SessionWindow, StrangeSessionsAreMovedIntoThePlan) {
  SavedSession strange;
  strange.budget = {9000000000000000000, -1};
  strange.wishes = {{WishKind::keep, "no such value"}, {WishKind::recompute, "op:opaque"}};
  strange.strategy = "nonsense";
  strange.place = {PlanView{{-1e15, -1e15 + 0.5}, {1e15 - 1, 1e15}}, "h3", 2000000000, kNone};
  strange.range = {5, 2000000000};
  strange.bookmarks = {{"far", {PlanView{{1e14, 1e15}, {0, 1e15}}, "", 0, 2000000000}},
                       {"gone", {std::nullopt, "gone", 0, kNone}}};
  strange.tables = {{"nodes", "bytes>", "no column", true, {{"no column", 50, false}, {"node", 9999, true}, {"node", 1, true}}},
                    {"no table", "x", "", false, {}}};
  strange.layout = "AAAA";
  open();
  strange.graph = "";
  for (const bool same_graph : {false, true}) {
    SavedSession session = strange;
    if (same_graph) {
      key(Qt::Key_S, Qt::ControlModifier);
      session.graph = read_session(read(session_path())).graph;
      ASSERT_FALSE(session.graph.empty());
    }
    folder.write("step.graph.session", session_text(session));
    reopen();
    settle_all();
    EXPECT_EQ(window->error(), "");
    EXPECT_NE(window->keeper().message().find("no such value"), std::string::npos) << window->keeper().message();
    EXPECT_EQ(window->session().wishes().size(), 1u);
    const PlanModel& model = *window->session().model();
    const PlanView view = window->session().view, home = model.home();
    EXPECT_GE(view.time.low, home.time.low);
    EXPECT_LE(view.time.high, home.time.high);
    EXPECT_GE(view.time.size(), 1);
    EXPECT_GE(view.address.low, home.address.low);
    EXPECT_LE(view.address.high, home.address.high);
    ASSERT_NE(window->session().selection().value, kNone);
    EXPECT_EQ(model.values().entry(window->session().selection().value).name, "h3");
    if (same_graph) {
      EXPECT_EQ(window->session().range(), (NodeRange{5, model.nodes() - 1}));
    }
    EXPECT_FALSE(window->nodes().table()->isColumnHidden(0));
    key(Qt::Key_F2);
    key(Qt::Key_F2);
    EXPECT_NE(window->keeper().message().find("this plan has no %gone"), std::string::npos) << window->keeper().message();
    settle_all();
  }
}

// Qt crashes on some damaged layouts, so only a layout that this person signed is given to Qt.
TEST_F(SessionWindow, ALayoutOfSomebodyElseIsLeftOut) {
  open();
  window->toggle_panel("curve");
  key(Qt::Key_S, Qt::ControlModifier);
  const SavedSession saved = read_session(read(session_path()));
  EXPECT_EQ(layout_if_signed(saved.layout), window->saveState());
  window->toggle_panel("curve");
  const QByteArray open_curve = window->saveState();
  const QByteArray bytes = QByteArray::fromBase64(QByteArray::fromStdString(saved.layout));
  for (int at = 0; at < bytes.size(); at += 97) {
    QByteArray bad = bytes;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    SavedSession session = saved;
    session.layout = bad.toBase64().toStdString();
    EXPECT_TRUE(layout_if_signed(session.layout).isEmpty()) << at;
    if (at % 5 != 0) continue;
    folder.write("step.graph.session", session_text(session));
    window->start_opening(path);
    ASSERT_TRUE(spin_until([&] { return !window->opening(); }));
    EXPECT_EQ(window->saveState(), open_curve) << at;
  }
  for (const char* text : {"", "AAAA", "////"}) EXPECT_TRUE(layout_if_signed(text).isEmpty());
}

TEST_F(SessionWindow, AnotherGraphKeepsNamesAndSaysSo) {
  open();
  set_everything_up();
  close();
  folder.write("step.graph", training_graph(6));
  open();
  EXPECT_NE(window->keeper().message().find("graph has changed"), std::string::npos) << window->keeper().message();
  EXPECT_EQ(window->session().view, window->session().model()->home());
  EXPECT_TRUE(window->session().range().empty());
  EXPECT_EQ(window->session().selection().value, value("h3"));
  EXPECT_EQ(window->session().wishes(), (std::vector<Wish>{{WishKind::keep, "h5"}}));
  EXPECT_EQ(window->nodes().filter()->text(), QStringLiteral("op:opaque us>10"));
}

TEST_F(SessionWindow, AFolderThatCannotBeWrittenIsSaidOnce) {
  open();
  window->session().select_value(value("h7"));
  const auto refuse_one_file = [] {
    set_file_call_hook([left = 1](FileCall call) mutable { return call == FileCall::open && left-- > 0 ? EACCES : 0; });
  };
  refuse_one_file();
  key(Qt::Key_S, Qt::ControlModifier);
  set_file_call_hook({});
  EXPECT_FALSE(has_file());
  EXPECT_NE(window->keeper().message().find("cannot be written"), std::string::npos) << window->keeper().message();
  EXPECT_EQ(window->keeper().written_path().find(own_session_folder()), 0u);
  reopen();
  EXPECT_EQ(window->session().selection().value, value("h7"));
  EXPECT_EQ(window->keeper().message(), "");  // said already
  window->session().select_value(value("h6"));
  refuse_one_file();
  close();
  set_file_call_hook({});
  open();
  EXPECT_EQ(window->session().selection().value, value("h6"));
  EXPECT_NE(window->keeper().message().find("could not be written"), std::string::npos) << window->keeper().message();
}

TEST_F(SessionWindow, ASessionThatCouldNotBeWrittenIsWrittenLater) {
  open();
  window->session().select_value(value("h7"));
  set_file_call_hook([](FileCall call) { return call == FileCall::open ? ENOSPC : 0; });
  window->keeper().leave();
  set_file_call_hook({});
  EXPECT_NE(window->keeper().message().find("the session is not saved"), std::string::npos) << window->keeper().message();
  EXPECT_FALSE(has_file());
  window->keeper().leave();
  EXPECT_TRUE(has_file());
}

TEST_F(SessionWindow, WhoMovesBeforeThePlanIsThereIsNotMovedBack) {
  open();
  window->slider().setValue(kBudgetSteps / 3);
  plan();
  wheel(window->memory_canvas(), *window->memory().place_of(value("h3")), 4);
  const PlanView zoomed = window->session().view;
  close();
  open();
  EXPECT_EQ(window->session().view, zoomed);
  window->start_opening(path);
  ASSERT_TRUE(spin_until([&] { return !window->opening() && window->session().model() != nullptr; }));
  if (window->session().solving()) {  // a draft is shown
    window->session().select_value(value("h9"));
    plan();
    EXPECT_EQ(window->session().selection().value, value("h9"));
  }
}

TEST_F(SessionWindow, WithoutSessionsNothingIsReadOrWritten) {
  open();
  window->session().select_value(value("h7"));
  close();
  ASSERT_TRUE(has_file());
  const std::string bytes = read(session_path());
  open(Sessions::off);
  EXPECT_EQ(window->session().selection().value, kNone);
  window->session().select_value(value("h2"));
  close();
  EXPECT_EQ(read(session_path()), bytes);
  open(Sessions::read);
  EXPECT_EQ(window->session().selection().value, value("h7"));
  window->session().select_value(value("h2"));
  close();
  EXPECT_EQ(read(session_path()), bytes);
}

TEST_F(SessionWindow, BookmarksAreAddedWalkedThroughRenamedAndRemoved) {
  open();
  window->session().select_value(value("h3"));
  key(Qt::Key_B, Qt::ControlModifier);
  window->session().select_node(20);
  window->session().zoom(0.5, 0.5);
  const PlanView zoomed = window->session().view;
  key(Qt::Key_B, Qt::ControlModifier);
  ASSERT_EQ(window->keeper().bookmarks().all().size(), 2u);
  EXPECT_EQ(window->keeper().bookmarks().all()[0].name, "%h3");
  key(Qt::Key_F2);  // around the end
  EXPECT_EQ(window->session().selection().value, value("h3"));
  EXPECT_EQ(window->session().view, window->session().model()->home());
  key(Qt::Key_F2, Qt::ShiftModifier);
  EXPECT_EQ(window->session().selection().node, 20);
  EXPECT_EQ(window->session().view, zoomed);
  window->run({find_command("bookmark.rename")});
  auto* dialog = window->findChild<QInputDialog*>();
  ASSERT_NE(dialog, nullptr);
  dialog->setTextValue(QStringLiteral("the middle & more"));
  dialog->accept();
  EXPECT_EQ(window->keeper().bookmarks().current()->name, "the middle & more");
  QMenu* list = nullptr;
  for (auto* menu : window->findChildren<QMenu*>())
    if (menu->title() == QStringLiteral("Bookmarks of this file")) list = menu;
  ASSERT_NE(list, nullptr);
  Q_EMIT list->aboutToShow();
  ASSERT_EQ(list->actions().size(), 2);
  list->actions()[0]->trigger();
  EXPECT_EQ(window->session().selection().value, value("h3"));
  window->run({find_command("bookmark.remove")});
  ASSERT_EQ(window->keeper().bookmarks().all().size(), 1u);
  EXPECT_EQ(window->keeper().bookmarks().all()[0].name, "the middle & more");
}

TEST(SessionOption, SaysWhenSessionsAreReadAndWritten) {
  const auto sessions = [](std::vector<std::string> arguments) {
    Options options;
    std::string error;
    arguments.insert(arguments.begin(), "a.tape");
    EXPECT_TRUE(parse_options(arguments, &options, &error)) << error;
    return options.sessions();
  };
  EXPECT_EQ(sessions({}), Sessions::read_and_write);
  EXPECT_EQ(sessions({"--no-session"}), Sessions::off);
  EXPECT_EQ(sessions({"--run", "go.peak"}), Sessions::off);
  EXPECT_EQ(sessions({"--run", "go.peak", "--session"}), Sessions::read_and_write);
  EXPECT_EQ(sessions({"--shot", "a.png"}), Sessions::off);
  EXPECT_EQ(sessions({"--shot", "a.png", "--session"}), Sessions::read);
  EXPECT_EQ(sessions({"--panel", "nodes", "--export", "a.csv", "--session"}), Sessions::read);
  Options options;
  std::string error;
  EXPECT_FALSE(parse_options({"a.tape", "--session", "--no-session"}, &options, &error));
}

TEST_F(SessionWindow, APictureShowsTheSessionOnlyWhereItIsAskedFor) {
  Options options;
  options.file = path;
  options.shot = folder.file("shot.png");
  options.panel = "memory";
  options.width = 900;
  options.height = 600;
  ASSERT_EQ(take_shot(options), kOk);
  const std::string plain = read(options.shot);
  open();
  window->session().select_value(value("h7"));
  close();
  const std::string bytes = read(session_path());
  ASSERT_EQ(take_shot(options), kOk);
  EXPECT_EQ(read(options.shot), plain);
  options.session = true;
  ASSERT_EQ(take_shot(options), kOk);
  EXPECT_NE(read(options.shot), plain);
  EXPECT_EQ(read(session_path()), bytes);
}

// ---- columns ----

TEST(Columns, OfTheTablesAreKeptInTheSettings) {
  const Folder folder;
  const std::string path = folder.write("step.graph", training_graph(4));
  const MainWindow::Setup setup{.renderer = Renderer::soft, .remember = true};
  {
    MainWindow window(setup);
    window.resize(1280, 720);
    window.show();
    window.open(path);
    QHeaderView& header = *window.nodes().table()->header();
    header.resizeSection(layout_of(TableId::nodes).column("op"), 143);
    header.moveSection(header.visualIndex(layout_of(TableId::nodes).column("type")), 0);
    window.nodes().table()->setColumnHidden(layout_of(TableId::nodes).column("role"), true);
    window.nodes().table()->sortByColumn(layout_of(TableId::nodes).column("us"), Qt::DescendingOrder);
    window.nodes().filter()->setText(QStringLiteral("opaque"));
    window.close();
  }
  MainWindow window(setup);
  QHeaderView& header = *window.nodes().table()->header();
  EXPECT_EQ(header.sectionSize(layout_of(TableId::nodes).column("op")), 143);
  EXPECT_EQ(header.logicalIndex(0), layout_of(TableId::nodes).column("type"));
  EXPECT_TRUE(window.nodes().table()->isColumnHidden(layout_of(TableId::nodes).column("role")));
  EXPECT_EQ(header.sortIndicatorSection(), layout_of(TableId::nodes).column("us"));
  EXPECT_EQ(window.nodes().filter()->text(), QString());  // a filter is of one file
  remember_columns("not what a viewer writes");
  MainWindow other(setup);
  EXPECT_EQ(other.nodes().table()->header()->logicalIndex(0), 0);
  user_settings().clear();
}

// ---- dropped and recent files ----

// Drops files on the place of a child, as the window system does.
void drop_on(MainWindow& window, const QWidget& child, const QList<QUrl>& urls, bool taken) {
  QMimeData data;
  data.setUrls(urls);
  const QPoint at = child.mapTo(&window, child.rect().center());
  QDragEnterEvent enter(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(window.windowHandle(), &enter);
  EXPECT_EQ(enter.isAccepted(), taken);
  QDragMoveEvent move(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(window.windowHandle(), &move);
  QDropEvent drop(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(window.windowHandle(), &drop);
}

QUrl url(const std::string& path) { return QUrl::fromLocalFile(QString::fromStdString(path)); }

TEST_F(SessionWindow, FilesAreDroppedOnAnyPanel) {
  open();
  const std::string a = folder.write("a.graph", training_graph(3)), b = folder.write("b.graph", training_graph(5));
  drop_on(*window, window->memory_canvas(), {url(a)}, true);
  plan();
  EXPECT_EQ(window->session().document()->path, a);
  EXPECT_EQ(find_compare(), nullptr);
  drop_on(*window, *window->nodes().table(), {url(b), url(a)}, true);
  EXPECT_TRUE(spin_until([] { return find_compare() != nullptr; }));
  EXPECT_EQ(window->session().document()->path, b);
  if (QWidget* other = find_compare()) other->close();
  drop_on(*window, window->memory_canvas(), {QUrl(QStringLiteral("https://example.org/step.tape"))}, false);
  EXPECT_FALSE(window->opening());
}

TEST(RecentFiles, OneFileStandsOnceAndAMissingOneIsGrey) {
  const Folder folder;
  const std::string path = folder.write("a.graph", training_graph(3)), gone = folder.write("gone.graph", training_graph(3));
  remember_recent_file(gone);
  remember_recent_file(path);
  remember_recent_file(folder.file("x/../a.graph"));
  remember_recent_file(folder.file("./a.graph"));
  EXPECT_EQ(recent_files().size(), 2);
  std::filesystem::remove(gone);
  MainWindow window({Renderer::soft, "software", true});
  for (auto* menu : window.findChildren<QMenu*>()) {
    if (menu->title() != QStringLiteral("Open recent")) continue;
    Q_EMIT menu->aboutToShow();
    ASSERT_EQ(menu->actions().size(), 2);
    EXPECT_TRUE(menu->actions()[0]->isEnabled());
    EXPECT_FALSE(menu->actions()[1]->isEnabled());
  }
  user_settings().remove(QStringLiteral("recent"));
}

}  // namespace
}  // namespace tapedeck::viewer
