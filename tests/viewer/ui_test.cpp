// Tests the viewer's window on the offscreen platform, with synthetic events.
#include <tapedeck/tests/viewer/pictures.h>
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/compare_window.h>
#include <tapedeck/viewer/screenshot.h>

#include <QtWidgets/QMessageBox>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <set>

namespace tapedeck::viewer {
namespace {

TEST_F(Window, AClickInTheMemoryPlanSelectsInAllPanels) {
  for (const char* name : {"h1", "h7", "d9"}) {
    const ValueId v = value(name);
    const auto place = window.memory().place_of(v);
    ASSERT_TRUE(place) << name;
    click(window.memory_canvas(), *place);
    expect_selected_everywhere(v);
  }
}

TEST_F(Window, AClickInTheCurveSelectsTheNodeInAllPanels) {
  click(window.curve_canvas(), window.curve().place_of(12));
  EXPECT_EQ(window.session().selection().node, 12);
  expect_selected_everywhere(graph().nodes[12].first_output);
}

TEST_F(Window, ARowOfTheTableSelectsInAllPanels) {
  window.nodes().table()->setCurrentIndex(window.nodes().table()->model()->index(20, 0));
  expect_selected_everywhere(graph().nodes[20].first_output);
}

TEST_F(Window, ALinkInTheDetailsSelectsInAllPanels) {
  window.session().select_value(value("h5"));
  Q_EMIT window.details().anchorClicked(QUrl(QStringLiteral("node:9")));
  expect_selected_everywhere(graph().nodes[9].first_output);
  Q_EMIT window.details().anchorClicked(QUrl(QStringLiteral("value:99999999")));
  EXPECT_EQ(window.session().selection().value, kNone);
}

TEST_F(Window, ADecisionSelectsItsValue) {
  window.set_budget({-1, 60});
  window.wait_for_plan();
  ASSERT_GT(window.session().model()->plan().decisions.size(), 0u);
  RowsView& rows = *window.decisions().table();
  EXPECT_EQ(static_cast<std::size_t>(rows.model()->rowCount()), window.session().model()->plan().decisions.size());
  rows.setCurrentIndex(rows.model()->index(0, 0));
  expect_selected_everywhere(value(window.session().model()->plan().decisions[0].value));
}

TEST_F(Window, HoverIsSharedAndLeaves) {
  const ValueId v = value("h3");
  send_mouse(window.memory_canvas(), QEvent::MouseMove, *window.memory().place_of(v));
  settle(window.memory_canvas());
  EXPECT_EQ(window.session().selection().hovered, v);
  EXPECT_EQ(window.session().selection().value, kNone);
}

// A canvas may hear too late, or never, that the mouse has gone to another one. Both come to rest, and only the one with the
// mouse decides what is hovered.
TEST_F(Window, TwoPicturesDoNotTakeTheHoverFromEachOther) {
  const ValueId v = value("h3");
  for (int i = 0; i < 2; ++i) {
    send_mouse(window.memory_canvas(), QEvent::MouseMove, *window.memory().place_of(v));
    settle_all();
    EXPECT_EQ(window.session().selection().hovered, v);
    send_mouse(window.curve_canvas(), QEvent::MouseMove, window.curve().place_of(12));
    settle_all();
    EXPECT_EQ(window.session().selection().hovered, kNone);
    EXPECT_TRUE(window.memory_canvas().settled());
  }
}

// The strip of phases says what it shows; the numbers below it need no words.
TEST_F(Window, TheStripOfPhasesExplainsItself) {
  Canvas& canvas = window.curve_canvas();
  const float x = window.curve().place_of(10).x, plot_end = static_cast<float>(canvas.height()) - kTimeAxisHeight - 6;
  const auto seen_at = [&](float y) {
    send_mouse(canvas, QEvent::MouseMove, ImVec2(x, y));
    settle(canvas);
    return canvas.grab().toImage();
  };
  const QImage below = seen_at(plot_end + 35);
  EXPECT_GT(share_different(seen_at(plot_end + 10), below), 0.005);
  EXPECT_EQ(share_different(seen_at(plot_end + 35), below), 0);
}

TEST_F(Window, WheelZoomsAtTheCursorAndKeysPan) {
  const PlanView home = window.session().view;
  const ImVec2 at = *window.memory().place_of(value("h3"));
  wheel(window.memory_canvas(), at, 3);
  const PlanView zoomed = window.session().view;
  EXPECT_LT(zoomed.time.size(), home.time.size());
  EXPECT_EQ(zoomed.address, home.address);
  wheel(window.memory_canvas(), at, 3, Qt::AltModifier);
  EXPECT_LT(window.session().view.address.size(), home.address.size());
  press(window.memory_canvas(), Qt::Key_D);
  settle(window.memory_canvas());
  EXPECT_GT(window.session().view.time.low, zoomed.time.low);
  press(window.memory_canvas(), Qt::Key_S);
  settle(window.memory_canvas());
  EXPECT_GT(window.session().view.time.size(), zoomed.time.size());
  window.session().fit_all();
  EXPECT_EQ(window.session().view, home);
}

TEST_F(Window, DraggingPansAndSelectsNothing) {
  Canvas& canvas = window.memory_canvas();
  const ImVec2 at = *window.memory().place_of(value("h3"));
  wheel(canvas, at, 6);
  const double before = window.session().view.time.low;
  send_mouse(canvas, QEvent::MouseMove, at);
  send_mouse(canvas, QEvent::MouseButtonPress, at, Qt::LeftButton);
  settle(canvas);
  for (int i = 1; i <= 5; ++i) {
    send_mouse(canvas, QEvent::MouseMove, ImVec2(at.x - 20.0f * static_cast<float>(i), at.y));
    settle(canvas);
  }
  send_mouse(canvas, QEvent::MouseButtonRelease, ImVec2(at.x - 100, at.y), Qt::LeftButton);
  settle(canvas);
  EXPECT_GT(window.session().view.time.low, before);
  EXPECT_EQ(window.session().selection().value, kNone);
}

TEST_F(Window, TheSliderPlansAgainInTheBackground) {
  const std::int64_t before = window.session().model()->plan().peak_bytes;
  const std::uint64_t old = window.session().model()->serial();
  window.slider().setValue(kBudgetSteps / 4);
  EXPECT_EQ(window.session().model()->serial(), old);  // the call did not wait for the new plan
  ASSERT_TRUE(spin_until([&] { return window.session().model()->serial() != old && !window.session().solving(); }));
  const Plan& plan = window.session().model()->plan();
  EXPECT_TRUE(plan.feasible);
  EXPECT_LE(plan.peak_bytes, plan.budget_bytes);
  EXPECT_LT(plan.peak_bytes, before);
  EXPECT_GT(plan.recomputed_nodes, 0);
  EXPECT_EQ(window.slider().value(), kBudgetSteps / 4);
  // The window's plan must equal the plan of the API.
  PlanOptions options;
  options.budget = plan.budget_bytes;
  EXPECT_EQ(make_plan(*window.session().document()->captured, options).peak_bytes, plan.peak_bytes);
}

TEST_F(Window, OnlyTheLastOfManySliderMovesIsShown) {
  for (int step = kBudgetSteps; step >= 300; step -= 10) window.slider().setValue(step);
  ASSERT_TRUE(spin_until([&] { return !window.session().solving() && window.session().model()->plan().budget_bytes >= 0; }));
  window.wait_for_plan();
  EXPECT_EQ(BudgetScale::of(window.session().model()->plan()).step_of(window.session().model()->plan().budget_bytes), 300);
}

// The line of the budget is a handle: its drag asks for the bytes under the mouse, and the line follows before any plan is
// there.
TEST_F(Window, TheBudgetLineIsDraggedInTheCurve) {
  const Plan& before = window.session().model()->plan();
  const std::int64_t peak = before.peak_bytes, wanted = (before.floor_bytes + peak) / 2;
  Canvas& canvas = window.curve_canvas();
  send_mouse(canvas, QEvent::MouseMove, window.curve().place_of_bytes(peak));
  settle(canvas);  // the frames under a resting mouse come to an end
  send_mouse(canvas, QEvent::MouseButtonPress, window.curve().place_of_bytes(peak), Qt::LeftButton);
  settle(canvas);
  send_mouse(canvas, QEvent::MouseMove, window.curve().place_of_bytes(wanted));
  settle(canvas);
  const std::int64_t asked = window.session().asked_budget();
  EXPECT_NEAR(static_cast<double>(asked), static_cast<double>(wanted), static_cast<double>(peak) / 50);
  send_mouse(canvas, QEvent::MouseButtonRelease, window.curve().place_of_bytes(wanted), Qt::LeftButton);
  window.wait_for_plan();
  EXPECT_EQ(window.session().model()->plan().budget_bytes, asked);
  EXPECT_EQ(window.session().selection().node, kNone);  // the click was no selection
}

// A smaller plan looks smaller: the axes do not change with the budget, and what was zoomed stays zoomed.
TEST_F(Window, TheScaleStaysWhenTheBudgetChanges) {
  const PlanView home = window.session().view;
  window.set_budget({-1, 60});
  window.wait_for_plan();
  EXPECT_EQ(window.session().view.address, home.address);
  const ImVec2 at = *window.memory().place_of(value("h3"));
  wheel(window.memory_canvas(), at, 4);
  const PlanView zoomed = window.session().view;
  window.set_budget({-1, 80});
  window.wait_for_plan();
  EXPECT_EQ(window.session().view.address, zoomed.address);
  EXPECT_DOUBLE_EQ(window.session().view.time.size(), zoomed.time.size());
  EXPECT_EQ(window.session().model()->home().address, home.address);
}

// While the search is still at work, the window shows drafts at once and calls them improving; it does not dim them.
// The same choices have the same addresses, whatever the budget that led to them.
TEST_F(Window, AddressesStayWhereThePeakStays) {
  const auto addresses = [&] {
    std::vector<std::pair<std::string, std::int64_t>> found;
    for (const PlanRect& r : window.session().model()->rects())
      if (r.value != kNone) found.emplace_back(window.session().model()->name_of(r.value), r.address);
    return found;
  };
  std::map<std::int64_t, std::vector<std::pair<std::string, std::int64_t>>> by_peak;
  const Plan first = window.session().model()->plan();
  const std::int64_t from = first.keep_all_peak_bytes, to = first.floor_bytes;
  int again = 0;
  for (int i = 0; i <= 40; ++i) {
    window.set_budget({from - (from - to) * ((i * 7) % 41) / 40, -1});  // there and back, as a hand does
    window.wait_for_plan();
    const auto [known, fresh] = by_peak.emplace(window.session().model()->plan().peak_bytes, addresses());
    if (fresh) continue;
    ++again;
    ASSERT_EQ(addresses(), known->second) << "budget " << window.session().asked_budget();
  }
  EXPECT_GE(again, 5);
}

TEST_F(Window, ADragShowsPlansWhileTheSearchIsAtWork) {
  window.open(folder.write("long.graph", training_graph(60)));
  ASSERT_TRUE(spin_until([&] { return window.session().model() != nullptr; }));
  std::set<std::uint64_t> shown;
  bool improving = false;
  for (int step = kBudgetSteps - 100; step >= 500; step -= 100) {
    const std::uint64_t before = window.session().model()->serial();
    window.slider().setValue(step);
    EXPECT_EQ(window.session().asked_budget(), window.budget_scale().bytes_at(step));
    ASSERT_TRUE(spin_until([&] { return window.session().model()->serial() != before; }));
    shown.insert(window.session().model()->serial());
    improving |= window.session().planning() == Planning::improving;
    EXPECT_TRUE(window.session().model()->plan().feasible || window.session().model()->plan().budget_bytes < 0);
  }
  EXPECT_TRUE(improving);
  EXPECT_GT(shown.size(), 2u);
  window.wait_for_plan();
  EXPECT_EQ(window.session().planning(), Planning::done);
}

TEST_F(Window, WishesPlanAgainAndAreUndone) {
  window.set_budget({-1, 60});
  window.wait_for_plan();
  ASSERT_GT(window.session().model()->plan().decisions.size(), 0u);
  const std::string given_up = window.session().model()->plan().decisions[0].value;
  const double cost = window.session().model()->plan().cost_us;
  const std::int64_t budget = window.session().model()->plan().budget_bytes;
  window.session().ask_wishes({{WishKind::keep, given_up}});
  window.wait_for_plan();
  const Plan& kept = window.session().model()->plan();
  EXPECT_EQ(kept.budget_bytes, budget);
  for (const Decision& decision : kept.decisions) EXPECT_NE(decision.value, given_up);
  EXPECT_GE(kept.cost_us, cost);
  EXPECT_NE(window.tool_line().find("--keep " + given_up), std::string::npos);
  EXPECT_TRUE(window.undo());
  window.wait_for_plan();
  EXPECT_EQ(window.session().model()->plan().cost_us, cost);
  EXPECT_TRUE(window.session().wishes().empty());
  EXPECT_FALSE(window.undo());
  EXPECT_TRUE(window.redo());
  window.wait_for_plan();
  EXPECT_EQ(window.session().wishes().size(), 1u);
}

TEST_F(Window, ABudgetBelowTheFloorShowsTheBestAndWhy) {
  window.set_budget({1, -1});
  window.wait_for_plan();
  const Plan& plan = window.session().model()->plan();
  EXPECT_FALSE(plan.feasible);
  EXPECT_FALSE(plan.infeasible_reason.empty());
  EXPECT_TRUE(window.details().toPlainText().contains(QStringLiteral("infeasible")));
}

TEST_F(Window, TheFilterNarrowsTheTable) {
  int backward = 0;
  for (const Node& node : graph().nodes) backward += node.origin.phase == Phase::backward ? 1 : 0;
  window.nodes().filter()->setText(QStringLiteral("phase:backward"));
  EXPECT_EQ(window.nodes().table()->model()->rowCount(), backward);
  window.nodes().filter()->setText(QStringLiteral("no such node"));
  EXPECT_EQ(window.nodes().table()->model()->rowCount(), 0);
  window.session().select_node(3);  // the filter hides its row; this must not crash
  window.nodes().filter()->clear();
  EXPECT_EQ(window.nodes().node_at(window.nodes().table()->currentIndex().row()), 3);
}

TEST_F(Window, OpeningAnotherFileForgetsTheOldOne) {
  window.session().select_value(value("h16"));
  window.open(folder.write("small.graph", training_graph(2)));
  window.wait_for_plan();
  settle_all();
  EXPECT_EQ(window.session().selection().value, kNone);
  EXPECT_EQ(window.nodes().table()->model()->rowCount(), graph().node_count());
}

TEST_F(Window, ABadFileIsAMessageAndTheOldOneStays) {
  const std::uint64_t before = window.session().model()->serial();
  for (const std::string& path : {folder.write("bad.graph", "graph nonsense {"),
                                  folder.write("bad.tape", std::string(1000, 'x')), folder.file("missing.tape")}) {
    window.start_opening(path);
    EXPECT_TRUE(window.opening());
    EXPECT_TRUE(spin_until([&] { return !window.opening(); }));
  }
  EXPECT_EQ(window.session().model()->serial(), before);
  const auto boxes = window.findChildren<QMessageBox*>();
  EXPECT_EQ(boxes.size(), 3);
  for (QMessageBox* box : boxes) box->close();
}

TEST_F(Window, CanvasesMayShrinkToNothing) {
  for (const auto& [w, h] : {std::pair(10, 10), std::pair(300, 40), std::pair(64, 700)}) {
    const QImage image = render_picture(window.memory(), w, h);
    EXPECT_EQ(image.size(), QSize(w, h));
    EXPECT_EQ(render_picture(window.curve(), w, h).size(), QSize(w, h));
  }
}

// ---- pictures without a window (take_shot) ----

Options shot_options(const Folder& folder, const std::string& panel = "") {
  Options options;
  options.file = folder.write("step.graph", training_graph(12));
  options.shot = folder.file("shot.png");
  options.panel = panel;
  options.width = 1000;
  options.height = 620;
  return options;
}

QRgb colour(RoleClass role) {
  const Colour c = role_class_colour(role);
  return qRgb(c.r, c.g, c.b);
}

TEST(Shot, EveryPanelAndTheWindowHaveTheAskedSizeAndAreNotBlank) {
  for (const std::string panel : {"", "memory", "curve", "nodes", "values", "parameters", "details", "decisions"}) {
    Folder folder;
    const Options options = shot_options(folder, panel);
    ASSERT_EQ(take_shot(options), kOk) << panel;
    const QImage image(QString::fromStdString(options.shot));
    EXPECT_EQ(image.size(), QSize(1000, 620)) << panel;
    EXPECT_GT(colours_in(image).size(), 20u) << panel;
  }
}

TEST(Shot, TheMemoryPlanShowsItsRoles) {
  Folder folder;
  Options options = shot_options(folder, "memory");
  options.budget = {-1, 75};
  ASSERT_EQ(take_shot(options), kOk);
  const std::set<QRgb> colours = colours_in(QImage(QString::fromStdString(options.shot)));
  for (RoleClass role : {RoleClass::state, RoleClass::input, RoleClass::saved, RoleClass::recomputed, RoleClass::gradient})
    EXPECT_TRUE(colours.count(colour(role))) << role_class_name(role);
  const Colour budget = colours::kBudget;
  EXPECT_TRUE(colours.count(qRgb(budget.r, budget.g, budget.b)));
}

TEST(Shot, TheSameInputGivesTheSameBytes) {
  for (const std::string panel : {"", "memory"}) {
    Folder folder;
    const Options options = shot_options(folder, panel);
    ASSERT_EQ(take_shot(options), kOk);
    const std::string first = read(options.shot);
    ASSERT_EQ(take_shot(options), kOk);
    EXPECT_EQ(first, read(options.shot)) << panel;
  }
}

TEST(Shot, AnInfeasibleBudgetStillDrawsAndSaysSo) {
  Folder folder;
  Options options = shot_options(folder, "memory");
  options.budget = {1, -1};
  EXPECT_EQ(take_shot(options), kInfeasible);
  EXPECT_TRUE(std::filesystem::exists(options.shot));
}

TEST(Shot, APictureThatCannotBeWrittenIsAnError) {
  Folder folder;
  Options options = shot_options(folder, "memory");
  options.shot = folder.file("no/such/folder.png");
  EXPECT_EQ(take_shot(options), kBadFile);
}

// A table that is drawn alone gives the room that is left to names that would be cut.
TEST(Shot, AWideTableShowsWholeNames) {
  Folder folder;
  Options options = shot_options(folder, "nodes");
  const std::string name = "a_value_with_a_name_that_is_longer_than_its_column";
  options.file =
      folder.write("names.graph", "graph g(%x: f32[8]) {\n  %" + name + ": f32[8] = relu(%x)\n  return %" + name + "\n}\n");
  options.shot = folder.file("table.svg");
  for (const auto& [width, whole] : {std::pair(560, false), std::pair(1300, true)}) {
    options.width = width;
    ASSERT_EQ(take_shot(options), kOk);
    EXPECT_EQ(read(options.shot).find(name) != std::string::npos, whole) << width;
  }
}

TEST(Shot, TwoPlansSideBySide) {
  Folder folder;
  Options options = shot_options(folder);
  options.compare = folder.write("other.graph", training_graph(5));
  ASSERT_EQ(take_shot(options), kOk);
  const QImage image(QString::fromStdString(options.shot));
  EXPECT_EQ(image.size(), QSize(1000, 620));
  EXPECT_TRUE(colours_in(image.copy(0, 0, 500, 620)).count(colour(RoleClass::saved)));
  EXPECT_TRUE(colours_in(image.copy(500, 0, 500, 620)).count(colour(RoleClass::saved)));
  options.compare = folder.file("missing.graph");
  EXPECT_EQ(take_shot(options), kBadFile);
}

TEST(Shot, DamagedFilesAreErrorsNeverCrashes) {
  Folder folder;
  TapeFile file;
  file.captured = parse(training_graph(6));
  file.plan = make_plan(file.captured);
  const std::string path = folder.file("good.tape");
  save_tape(path, file);
  Options options = shot_options(folder, "memory");
  options.width = 200;
  options.height = 150;
  options.file = path;
  ASSERT_EQ(take_shot(options), kOk);
  const std::string good = read(path);
  const unsigned seed = 20240607;
  std::mt19937 random(seed);
  options.file = folder.file("bad.tape");
  for (std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{8}, std::size_t{100}, good.size() / 2}) {
    folder.write("bad.tape", good.substr(0, length));
    EXPECT_EQ(take_shot(options), kBadFile) << length << " bytes";
  }
  for (int i = 0; i < 30; ++i) {
    std::string bad = good;
    for (unsigned flips = 1 + random() % 3; flips > 0; --flips)
      bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
    folder.write("bad.tape", bad);
    const int code = take_shot(options);  // a changed padding byte is harmless
    EXPECT_TRUE(code == kBadFile || code == kOk) << "seed " << seed << " round " << i;
  }
}

TEST(Renderer, OffscreenIsAlwaysSoftware) {
  std::string why;
  EXPECT_EQ(choose_renderer(Renderer::automatic, &why), Renderer::soft);
  EXPECT_EQ(choose_renderer(Renderer::gl, &why), Renderer::soft);
  EXPECT_FALSE(why.empty());
}

// ---- the command line ----

bool parsed(std::vector<std::string> arguments, Options* options, std::string* error) {
  *options = {};
  error->clear();
  return parse_options(arguments, options, error);
}

TEST(CommandLine, ReadsWhatItKnows) {
  Options o;
  std::string error;
  ASSERT_TRUE(parsed(
      {"a.tape", "--shot", "x.png", "--size=800x600", "--panel", "curve", "--budget", "50%", "--renderer", "soft"}, &o, &error))
      << error;
  EXPECT_EQ(o.file, "a.tape");
  EXPECT_EQ(o.shot, "x.png");
  EXPECT_EQ(o.width, 800);
  EXPECT_EQ(o.height, 600);
  EXPECT_EQ(o.panel, "curve");
  EXPECT_EQ(o.budget.percent, 50);
  EXPECT_EQ(o.renderer, Renderer::soft);
  EXPECT_TRUE(parsed({}, &o, &error));
  EXPECT_TRUE(parsed({"--help", "--panel", "x"}, &o, &error));
}

TEST(CommandLine, SaysWhatIsWrongWithWhich) {
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> cases = {
      {{"a", "--compare", "--shot", "x.png"}, {"--compare needs a value", "--shot is an option"}},
      {{"a.tape", "b.tape"}, {"'a.tape'", "'b.tape'", "--compare"}},
      {{"--help=3"}, {"--help takes no value"}},
      {{"a", "--no-session=1"}, {"--no-session takes no value"}},
      {{"a", "--shot"}, {"--shot needs a value"}},
      {{"a", "--pannel", "x"}, {"--pannel", "'--panel'"}},
  };
  for (const auto& [arguments, words] : cases) {
    Options o;
    std::string error;
    EXPECT_FALSE(parse_options(arguments, &o, &error));
    for (const std::string& word : words) EXPECT_NE(error.find(word), std::string::npos) << word << " in: " << error;
  }
}

TEST(CommandLine, RefusesWhatItDoesNot) {
  Options o;
  std::string error;
  const std::vector<std::vector<std::string>> bad = {{"--frobnicate"},
                                                     {"a", "b"},
                                                     {"--shot"},
                                                     {"--shot", "x.png"},
                                                     {"a", "--size", "10"},
                                                     {"a", "--size", "0x0"},
                                                     {"a", "--size", "99999x10"},
                                                     {"a", "--shot", "x", "--panel", "nope"},
                                                     {"a", "--panel", "curve"},
                                                     {"a", "--budget", "lots"},
                                                     {"a", "--renderer", "vulkan"},
                                                     {"a", "--shot="},
                                                     {"--compare", "b"},
                                                     {"a", "--frob=1"},
                                                     {"a", "--size", "-5x100"},
                                                     {"a", "--shot", "x", "--panel", "nodes", "--compare", "b"},
                                                     {"a", "--export", "x.csv"},
                                                     {"a", "--export", "x.csv", "--panel", "mem"},
                                                     {"a", "--export", "x.txt", "--panel", "nodes"},
                                                     {"--export", "x.csv", "--panel", "nodes"}};
  for (const auto& arguments : bad) {
    EXPECT_FALSE(parsed(arguments, &o, &error)) << arguments[0];
    EXPECT_FALSE(error.empty());
  }
}

#ifdef TAPEDECK_VIEWER_PROGRAM
int run(const std::string& arguments) {
  const int status = std::system(
      ("env -u DISPLAY -u WAYLAND_DISPLAY -u QT_QPA_PLATFORM '" TAPEDECK_VIEWER_PROGRAM "' " + arguments + " >/dev/null 2>&1")
          .c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Program, ExitCodesWithoutAnyDisplay) {
  Folder folder;
  const std::string good = folder.write("step.graph", training_graph(4)), bad = folder.write("bad.tape", "not a tape"),
                    png = folder.file("x.png");
  EXPECT_EQ(run("--help"), kOk);
  EXPECT_EQ(run("--version"), kOk);
  EXPECT_EQ(run("--commands"), kOk);
  EXPECT_EQ(run("--no-such-option"), kUsage);
  EXPECT_EQ(run(good + " --shot " + png + " --run view.fit-all"), kOk);
  EXPECT_EQ(run(good + " --shot " + png + " --run view.fit-al"), kUsage);
  EXPECT_EQ(run(good + " --shot " + png + ".gif"), kUsage);
  EXPECT_EQ(run(good + " --shot " + png + " --size 640x480"), kOk);
  EXPECT_EQ(QImage(QString::fromStdString(png)).size(), QSize(640, 480));
  EXPECT_EQ(run(bad + " --shot " + png), kBadFile);
  const std::string csv = folder.file("x.csv");
  EXPECT_EQ(run(good + " --panel values --export " + csv), kOk);
  EXPECT_EQ(read(csv).substr(0, 23), "name,op,type,bytes,us,c");
  EXPECT_EQ(run(good + " --panel values --export " + folder.file("no/such/folder.csv")), kBadFile);
  EXPECT_EQ(run(good + " --shot " + png + " --budget 1"), kInfeasible);
  EXPECT_EQ(run(good), kExecution);  // a window would need a display
  setenv("XDG_CONFIG_HOME", folder.file("settings").c_str(), 1);
  EXPECT_EQ(run(good + " --run view.fit-all,file.quit -platform offscreen"), kOk);  // a window that closes by itself
  unsetenv("XDG_CONFIG_HOME");
}
#endif

}  // namespace
}  // namespace tapedeck::viewer
