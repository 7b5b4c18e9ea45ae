// Tests by real events what the pictures show: the colours by role, module and op, the axis in nodes and in microseconds, the
// chain of values that share bytes, and what the details say of the peak.
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/capture/cost/cost_model.h>
#include <tapedeck/capture/explain/explain_memory.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/command_palette.h>
#include <tapedeck/viewer/model/tool_command.h>
#include <tapedeck/viewer/plan/plan_unit.h>
#include <tapedeck/viewer/screenshot.h>
#include <tapedeck/viewer/settings.h>
#include <tapedeck/viewer/words/format.h>

#include <QtCore/QJsonArray>
#include <QtCore/QJsonDocument>
#include <QtCore/QJsonObject>
#include <QtCore/QProcess>
#include <QtGui/QImage>
#include <QtGui/QTextBlock>
#include <QtGui/QTextDocument>

#include <cmath>
#include <set>

namespace tapedeck::viewer {
namespace {

class Pictures : public Window {
 protected:
  // Runs a command by the palette, with the keys of a keyboard.
  void run(const std::string& id) {
    activate();
    press(window, Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    type(window, id);
    press(window, Qt::Key_Return);
    settle_all();
  }
  Session& session() { return window.session(); }
  std::set<QRgb> colours_in(Canvas& canvas) {
    const QImage image = canvas.grab().toImage();
    std::set<QRgb> found;
    for (int y = 0; y < image.height(); y += 2)
      for (int x = 0; x < image.width(); x += 2) found.insert(image.pixel(x, y));
    return found;
  }
  static void leave(Canvas& canvas) {
    QEvent event(QEvent::Leave);
    QApplication::sendEvent(&canvas, &event);
    settle(canvas);
  }
  static QRgb rgb(Colour c) { return QColor(c.r, c.g, c.b).rgb(); }
};

TEST_F(Pictures, ColoursFollowTheCommands) {
  run("view.colour-by-module");
  EXPECT_EQ(session().colour_by(), ColourBy::module);
  std::set<QRgb> memory = colours_in(window.memory_canvas());
  for (int group = 0; group < 4; ++group) EXPECT_TRUE(memory.count(rgb(group_colour(group)))) << group;
  EXPECT_FALSE(memory.count(rgb(role_class_colour(RoleClass::saved))));
  run("view.colour-by-op");
  EXPECT_EQ(session().colour_by(), ColourBy::op);
  memory = colours_in(window.memory_canvas());
  EXPECT_TRUE(memory.count(rgb(group_colour(0))));
  EXPECT_FALSE(memory.count(rgb(group_colour(1))));  // all nodes are of one op
  run("view.colour-by-role");
  EXPECT_TRUE(colours_in(window.memory_canvas()).count(rgb(role_class_colour(RoleClass::saved))));
}

TEST_F(Pictures, TheCurveIsStackedByTheSameChoice) {
  const auto stacked = [&](Colour c) { return rgb(mixed(colours::kPlot, c, 0.85)); };
  EXPECT_TRUE(colours_in(window.curve_canvas()).count(stacked(role_class_colour(RoleClass::saved))));
  run("view.colour-by-module");
  const std::set<QRgb> curve = colours_in(window.curve_canvas());
  EXPECT_TRUE(curve.count(stacked(group_colour(0))));
  EXPECT_FALSE(curve.count(stacked(role_class_colour(RoleClass::saved))));
}

TEST_F(Pictures, AModuleKeepsItsColourWhenTheBudgetMoves) {
  run("view.colour-by-module");
  const auto colour_of = [&](const std::string& name) {
    const PlanModel& model = *session().model();
    for (std::size_t r = 0; r < model.rects().size(); ++r)
      if (model.rects()[r].value != kNone && graph().value_name(model.rects()[r].value) == name)
        return html_colour(session().colours().colour_of(r));
    return std::string();
  };
  const std::string before = colour_of("h9");
  ASSERT_FALSE(before.empty());
  window.set_budget({-1, 60});
  window.wait_for_plan();
  EXPECT_EQ(colour_of("h9"), before);
}

TEST_F(Pictures, TheAxisInMicrosecondsKeepsWhatIsInView) {
  session().view.time = {8, 24};
  session().view_changed();
  const PlanView nodes = session().view;
  run("view.axis-time");
  EXPECT_EQ(session().time_unit(), TimeUnit::us);
  const TimeAxis& axis = *session().time_axis();
  ASSERT_EQ(axis.unit(), TimeUnit::us);
  EXPECT_NEAR(axis.at(graph().node_count()), session().model()->plan().cost_us, 1e-6 * session().model()->plan().cost_us);
  EXPECT_DOUBLE_EQ(session().view.time.low, axis.at(8));
  EXPECT_DOUBLE_EQ(session().view.time.high, axis.at(24));
  EXPECT_EQ(session().view.address, nodes.address);
  run("view.axis-nodes");
  EXPECT_NEAR(session().view.time.low, 8, 1e-9);
  EXPECT_NEAR(session().view.time.high, 24, 1e-9);
}

TEST_F(Pictures, HitsAreRightOnAnAxisInMicroseconds) {
  run("view.axis-time");
  session().fit_all();
  settle_all();
  for (const char* name : {"h1", "h7", "d9"}) {
    const ValueId v = value(name);
    const auto place = window.memory().place_of(v);
    ASSERT_TRUE(place) << name;
    click(window.memory_canvas(), *place);
    expect_selected_everywhere(v);
  }
  leave(window.memory_canvas());
  std::vector<NodeId> wide;  // a mouse has whole pixels, so a narrow node is missed
  for (NodeId n = 0; n < graph().node_count(); ++n)
    if (session().model()->values().node_us(n) > 50) wide.push_back(n);
  ASSERT_GT(wide.size(), 30u);
  for (const std::size_t i : {3u, 12u, 30u}) {
    click(window.curve_canvas(), window.curve().place_of(wide[i]));
    EXPECT_EQ(session().selection().node, wide[i]);
  }
  // A dragged range has the nodes under the mouse, and the wheel zooms around the cursor.
  Canvas& canvas = window.curve_canvas();
  const ImVec2 from = window.curve().place_of(wide[5]), to = window.curve().place_of(wide[20]);
  send_mouse(canvas, QEvent::MouseMove, from);
  send_mouse(canvas, QEvent::MouseButtonPress, from, Qt::LeftButton);
  settle(canvas);
  send_mouse(canvas, QEvent::MouseMove, to);
  settle(canvas);
  send_mouse(canvas, QEvent::MouseButtonRelease, to, Qt::LeftButton);
  settle(canvas);
  EXPECT_EQ(session().range(), (NodeRange{wide[5], wide[20]}));
  wheel(canvas, window.curve().place_of(wide[12]), 4);
  EXPECT_LT(session().view.time.size(), session().home().time.size());
  click(canvas, window.curve().place_of(wide[12]));
  EXPECT_EQ(session().selection().node, wide[12]);
}

TEST_F(Pictures, AnotherBudgetKeepsThePartOfTheStepOnAnAxisInMicroseconds) {
  run("view.axis-time");
  session().select_value(value("h5"));
  session().fit_selection();
  session().fit_selection();
  const double size = session().view.time.size();
  window.set_budget({-1, 60});
  window.wait_for_plan();
  EXPECT_NEAR(session().view.time.size(), size, 1e-6 * size);
  session().fit_all();
  EXPECT_EQ(session().view, session().home());
  EXPECT_NEAR(session().view.time.high, session().model()->plan().cost_us, 1e-6 * session().model()->plan().cost_us);
}

TEST_F(Pictures, ValuesInTheSameBytesAreListedAndOutlined) {
  window.open(folder.write(
      "chain.graph",
      "graph g(%x: f32[64,64]) state(%w: f32[64,64]) {\n  %a: f32[64,64] = matmul(%x, %w)\n  %b: f32[64,64] = relu(%a)\n"
      "  %c: f32[64,64] = exp(%b)\n  %y: f32[64,64] = matmul(%c, %w)\n  return %y\n}\n"));
  window.wait_for_plan();
  settle_all();
  const QImage before = window.memory_canvas().grab().toImage();
  click(window.memory_canvas(), *window.memory().place_of(value("b")));
  const QString text = window.details().toPlainText();
  EXPECT_TRUE(text.contains(QStringLiteral("%b is computed in the bytes of %a, which nobody reads any more")));
  EXPECT_TRUE(text.contains(QStringLiteral("%c is computed in the bytes of %b, which nobody reads any more")));
  EXPECT_NE(window.memory_canvas().grab().toImage(), before);
}

// Where a text of a link is written, so that a mouse can click it.
QPoint place_of_link(QTextBrowser& browser, const QString& href) {
  for (QTextBlock block = browser.document()->begin(); block.isValid(); block = block.next())
    for (auto it = block.begin(); !it.atEnd(); ++it) {
      const QTextFragment fragment = it.fragment();
      if (fragment.charFormat().anchorHref() != href) continue;
      QTextCursor cursor(browser.document());
      cursor.setPosition(fragment.position() + 1);
      browser.setTextCursor(cursor);
      browser.ensureCursorVisible();
      return browser.cursorRect(cursor).center();
    }
  ADD_FAILURE() << "no link " << href.toStdString();
  return {};
}

void click_at(QWidget& widget, const QPoint& place) {
  const QPointF p(place);
  for (const QEvent::Type type : {QEvent::MouseMove, QEvent::MouseButtonPress, QEvent::MouseButtonRelease}) {
    QMouseEvent event(type, p, widget.mapToGlobal(p), type == QEvent::MouseMove ? Qt::NoButton : Qt::LeftButton,
                      type == QEvent::MouseButtonPress ? Qt::LeftButton : Qt::NoButton, Qt::NoModifier);
    QApplication::sendEvent(&widget, &event);
  }
}

TEST_F(Pictures, AClickOnThePeakSaysWhatWouldLowerItWithTheNumbersOfTheTool) {
  window.set_budget({-1, 70});
  window.wait_for_plan();
  settle_all();
  click(window.curve_canvas(), window.curve().place_of_peak());
  ASSERT_TRUE(spin_until([&] { return window.details().settled(); }));
  const PlanModel& model = *session().model();
  EXPECT_EQ(session().selection().node, model.peak_node());
  const PeakExplanation library = explain_peak(model.plan(), cost_nodes(model.graph(), nullptr).us);
  const QString text = window.details().toPlainText();
  EXPECT_TRUE(text.contains(QStringLiteral("What would lower the peak")));
  ASSERT_GT(library.alive.size(), 2u);
  std::int64_t total = library.external_bytes;
  for (const PeakTenant& t : library.alive) {
    total += t.bytes;
    EXPECT_TRUE(text.contains(QString::fromStdString(in_unit(t.advice, unit_of(model.plan()))))) << t.advice;
  }
  EXPECT_EQ(total, model.curve()[static_cast<std::size_t>(model.peak_node())]);
  EXPECT_TRUE(text.contains(QString::fromStdString(unit_of(model.plan()).exact_text(total))));
#ifdef TAPEDECK_TOOL
  std::vector<std::string> words = tool_words(*session().document(), session().wishes(), model.plan().budget_bytes);
  for (const char* word : {"--explain", "peak", "--json"}) words.push_back(word);
  QStringList arguments;
  for (std::size_t i = 1; i < words.size(); ++i) arguments << QString::fromStdString(words[i]);
  QProcess tool;
  tool.start(QStringLiteral(TAPEDECK_TOOL), arguments);
  ASSERT_TRUE(tool.waitForFinished(120'000));
  const QJsonObject peak = QJsonDocument::fromJson(tool.readAllStandardOutput()).object()[QLatin1String("peak")].toObject();
  EXPECT_EQ(peak[QLatin1String("node")].toInt(-7), model.peak_node());
  const QJsonArray alive = peak[QLatin1String("alive")].toArray();
  ASSERT_EQ(static_cast<std::size_t>(alive.size()), library.alive.size());
  for (const QJsonValue& tenant : alive)
    EXPECT_TRUE(text.contains(
        QString::fromStdString(in_unit(tenant[QLatin1String("advice")].toString().toStdString(), unit_of(model.plan())))));
#endif
  // A click on an entry selects its value.
  const std::vector<std::size_t> order = by_help(window.details().peak_help().explanation);
  ASSERT_FALSE(order.empty());
  for (const std::size_t i : order) {
    const ValueId v = library.alive[i].value;
    if (v == kNone || graph().values[static_cast<std::size_t>(v)].node == model.peak_node()) continue;
    const QString link = QStringLiteral("value:%1").arg(v);
    click_at(*window.details().viewport(), place_of_link(window.details(), link));
    EXPECT_EQ(session().selection().value, v);
    break;
  }
}

TEST_F(Pictures, TheValuesThatWouldLowerThePeakComeFirst) {
  click(window.curve_canvas(), window.curve().place_of_peak());
  ASSERT_TRUE(spin_until([&] { return window.details().settled(); }));
  const PeakExplanation& e = window.details().peak_help().explanation;
  bool helped = true;
  std::int64_t before = 0;
  for (const std::size_t i : by_help(e)) {
    const bool helps = lowers_the_peak(e, e.alive[i]);
    EXPECT_TRUE(helped || !helps);
    if (helps && e.alive[i].recomputable) {
      EXPECT_GE(e.alive[i].peak_after, before);
      before = e.alive[i].peak_after;
    }
    helped = helps;
  }
  EXPECT_GT(before, 0);  // a saved value can be made again
}

TEST(PictureSettings, AreKept) {
  {
    MainWindow window{{Renderer::soft, "software", true}};
    window.set_colour_by(ColourBy::module);
    window.set_time_unit(TimeUnit::us);
  }
  {
    MainWindow window{{Renderer::soft, "software", true}};
    EXPECT_EQ(window.session().colour_by(), ColourBy::module);
    EXPECT_EQ(window.session().time_unit(), TimeUnit::us);
  }
  for (const char* key : {"colour-by", "axis"}) user_settings().remove(QLatin1String(key));
  EXPECT_EQ(remembered_colour_by(), ColourBy::role);
  EXPECT_EQ(remembered_time_unit(), TimeUnit::nodes);
}

TEST(PictureSettings, AShotShowsWhatItsCommandsSay) {
  Folder folder;
  Options options;
  options.file = folder.write("step.graph", training_graph(12));
  options.width = 700;
  options.height = 500;
  std::set<std::string> pictures;
  std::string error;
  for (const char* panel : {"memory", "curve"})
    for (const char* ids : {"view.colour-by-role", "view.colour-by-module", "view.axis-time"}) {
      options.panel = panel;
      options.run.clear();
      options.shot = folder.file("shot.png");
      ASSERT_TRUE(parse_commands(ids, &options.run, &error)) << error;
      ASSERT_EQ(take_shot(options), kOk) << ids;
      EXPECT_TRUE(pictures.insert(read(options.shot)).second) << panel << " " << ids;
    }
}

}  // namespace
}  // namespace tapedeck::viewer
