// Tests, with real events, what a person can do that is no command: the controls of the budget, menus of tables, links of the
// details, items of the palette and of the menu bar, double clicks.
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/viewer/command_palette.h>
#include <tapedeck/viewer/words/format.h>

#include <QtCore/QTimer>
#include <QtGui/QClipboard>
#include <QtGui/QContextMenuEvent>
#include <QtGui/QTextBlock>
#include <QtGui/QTextCursor>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QMenu>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QStyle>
#include <QtWidgets/QStyleOptionSlider>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QTreeWidget>

namespace tapedeck::viewer {
namespace {

void send(QWidget& to, QEvent::Type type, const QPoint& at, Qt::MouseButton button = Qt::LeftButton) {
  const Qt::MouseButtons held = type == QEvent::MouseButtonRelease ? Qt::NoButton : button;
  QMouseEvent event(type, at, to.mapToGlobal(QPointF(at)), type == QEvent::MouseMove ? Qt::NoButton : button, held,
                    Qt::NoModifier);
  QApplication::sendEvent(&to, &event);
}

void click_at(QWidget& to, const QPoint& at) {
  send(to, QEvent::MouseMove, at, Qt::NoButton);
  send(to, QEvent::MouseButtonPress, at);
  send(to, QEvent::MouseButtonRelease, at);
}

// Clicks with the right button, and returns the menu that opens.
QMenu* right_click(QWidget& to, const QPoint& at) {
  QContextMenuEvent event(QContextMenuEvent::Mouse, at, to.mapToGlobal(at));
  QApplication::sendEvent(&to, &event);
  return qobject_cast<QMenu*>(QApplication::activePopupWidget());
}

QAction* action_of(const QMenu& menu, const QString& begin) {
  for (QAction* action : menu.actions())
    if (action->text().startsWith(begin)) return action;
  return nullptr;
}

void click_action(QMenu& menu, const QString& begin) {
  QAction* action = action_of(menu, begin);
  ASSERT_NE(action, nullptr) << begin.toStdString();
  click_at(menu, menu.actionGeometry(action).center());
}

class Mouse : public Window {
 protected:
  const Plan& plan() { return window.session().model()->plan(); }
  QDoubleSpinBox* box(const char* suffix) {
    for (auto* each : window.findChildren<QDoubleSpinBox*>())
      if (each->suffix() == QString::fromUtf8(suffix)) return each;
    return nullptr;
  }
  void type_into(QDoubleSpinBox& box, const std::string& text) {
    box.setFocus();
    box.selectAll();
    for (const char c : text) press(box, c == '.' ? int{Qt::Key_Period} : c, Qt::NoModifier, QString(QLatin1Char(c)));
    press(box, Qt::Key_Return);
    window.wait_for_plan();
  }
};

// ---- the budget ----

TEST_F(Mouse, TheHandleOfTheSliderIsDragged) {
  QSlider& slider = window.slider();
  const auto handle = [&] {
    QStyleOptionSlider option;
    option.initFrom(&slider);
    option.orientation = Qt::Horizontal;
    option.minimum = slider.minimum();
    option.maximum = slider.maximum();
    option.sliderPosition = slider.sliderPosition();
    option.sliderValue = slider.value();
    return slider.style()->subControlRect(QStyle::CC_Slider, &option, QStyle::SC_SliderHandle, &slider).center();
  };
  const QPoint from = handle();
  ASSERT_EQ(slider.value(), kBudgetSteps);
  send(slider, QEvent::MouseButtonPress, from);
  const QPoint to(slider.width() / 2, from.y());
  for (int i = 1; i <= 4; ++i) send(slider, QEvent::MouseMove, from + (to - from) * i / 4);
  EXPECT_TRUE(slider.isSliderDown());
  EXPECT_EQ(window.session().asked_budget(), window.budget_scale().bytes_at(slider.value()));  // before any release
  send(slider, QEvent::MouseButtonRelease, to);
  window.wait_for_plan();
  EXPECT_NEAR(slider.value(), kBudgetSteps / 2, kBudgetSteps / 20);
  EXPECT_EQ(plan().budget_bytes, window.budget_scale().bytes_at(slider.value()));
  EXPECT_LE(plan().peak_bytes, plan().budget_bytes);
}

TEST_F(Mouse, TheArrowsMoveTheSliderThatHasTheFocus) {
  window.slider().setFocus();
  for (int i = 0; i < 3; ++i) press(window, Qt::Key_PageDown);
  EXPECT_EQ(window.slider().value(), kBudgetSteps - 3 * kBudgetSteps / 20);
  press(window, Qt::Key_Left);
  EXPECT_EQ(window.slider().value(), kBudgetSteps - 3 * kBudgetSteps / 20 - 1);
  window.wait_for_plan();
  EXPECT_EQ(plan().budget_bytes, window.budget_scale().bytes_at(window.slider().value()));
}

TEST_F(Mouse, ABudgetIsTypedAndTakenBackByTheButton) {
  const std::int64_t keep_all = plan().keep_all_peak_bytes;
  type_into(*box(" %"), "80");
  EXPECT_NEAR(static_cast<double>(plan().budget_bytes), static_cast<double>(keep_all) * 0.8, 1);
  type_into(*box(" MiB"), "1.5");
  EXPECT_EQ(plan().budget_bytes, 3 * 1048576 / 2);
  for (auto* button : window.findChildren<QToolButton*>())
    if (button->text() == QStringLiteral("No budget")) click_widget(*button);
  window.wait_for_plan();
  EXPECT_EQ(plan().budget_bytes, -1);
}

// The box of the size has the unit of the pictures.
TEST_F(Mouse, ALargeBudgetIsTypedInGiB) {
  window.open(folder.write("large.graph",
                           "graph g(%x: f32[268435456]) {\n  %a: f32[268435456] = opaque(%x) {us=1.0}\n"
                           "  %b: f32[268435456] = opaque(%a) {us=1.0}\n  return %b\n}\n"));
  window.wait_for_plan();
  EXPECT_EQ(box(" MiB"), nullptr);
  ASSERT_NE(box(" GiB"), nullptr);
  EXPECT_DOUBLE_EQ(box(" GiB")->value(), 3);
  EXPECT_EQ(window.session().asked_budget(), -1);  // a change of the unit asks for nothing
  type_into(*box(" GiB"), "3.5");
  EXPECT_EQ(plan().budget_bytes, (std::int64_t{7} << 30) / 2);
}

// ---- tables ----

TEST_F(Mouse, ARightClickOnTheHeaderChoosesTheColumns) {
  window.show_panel("nodes");
  RowsView& view = *window.nodes().table();
  QHeaderView& header = *view.header();
  const auto column = [&](const QString& title) {
    for (int c = 0; c < header.count(); ++c)
      if (view.model()->headerData(c, Qt::Horizontal).toString() == title) return c;
    return -1;
  };
  const int module = column(QStringLiteral("module")), bytes = column(QStringLiteral("bytes"));
  ASSERT_TRUE(view.isColumnHidden(module));
  for (const auto& [title, hidden] : {std::pair("module", false), {"bytes", true}, {"bytes", false}}) {
    QMenu* menu = right_click(*header.viewport(), {header.sectionViewportPosition(0) + 5, header.height() / 2});
    ASSERT_NE(menu, nullptr) << title;
    EXPECT_EQ(menu->actions().size(), header.count());
    EXPECT_FALSE(menu->actions()[0]->isEnabled());  // of the name, which stays
    click_action(*menu, QString::fromLatin1(title));
    EXPECT_EQ(view.isColumnHidden(column(QString::fromLatin1(title))), hidden) << title;
    EXPECT_EQ(QApplication::activePopupWidget(), nullptr);
  }
  EXPECT_FALSE(view.isColumnHidden(module));
  EXPECT_FALSE(view.isColumnHidden(bytes));
}

TEST_F(Mouse, ARightClickOnRowsCopiesAndExports) {
  window.show_panel("values");
  TablePanel& values = window.table("values");
  RowsView& view = *values.table();
  QCoreApplication::processEvents();
  const QPoint at = view.visualRect(view.model()->index(2, 0)).center();
  click_at(*view.viewport(), at);
  QMenu* menu = right_click(*view.viewport(), at);
  ASSERT_NE(menu, nullptr);
  click_action(*menu, QStringLiteral("Copy"));
  const std::string copied = QGuiApplication::clipboard()->text().toStdString();
  EXPECT_EQ(copied, values.selected_text());
  const std::string name = view.model()->index(2, 0).data().toString().toStdString();
  EXPECT_TRUE(copied.starts_with(name + "\t")) << copied << " for " << name;

  const std::string path = folder.file("values.csv");
  bool chosen = false;
  QTimer::singleShot(0, [&] {  // the dialog runs an event loop of its own
    auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    ASSERT_NE(dialog, nullptr);
    auto* name = dialog->findChild<QLineEdit*>();
    name->setText(QString::fromStdString(path));
    press(*name, Qt::Key_Return);
    chosen = true;
  });
  menu = right_click(*view.viewport(), at);
  ASSERT_NE(menu, nullptr);
  click_action(*menu, QStringLiteral("Export"));
  EXPECT_TRUE(chosen);
  EXPECT_TRUE(read(path).starts_with("name,op,type,"));
}

TEST_F(Mouse, ADoubleClickOnARowMovesItsValueToTheCentre) {
  window.show_panel("nodes");
  QCoreApplication::processEvents();
  RowsView& view = *window.nodes().table();
  window.session().zoom(0.2, 1);
  const PlanView before = window.session().view;
  const QPoint at = view.visualRect(view.model()->index(5, 0)).center();
  click_at(*view.viewport(), at);
  send(*view.viewport(), QEvent::MouseButtonDblClick, at);
  send(*view.viewport(), QEvent::MouseButtonRelease, at);
  EXPECT_EQ(window.session().selection().node, 5);
  EXPECT_LT(window.session().view.time.low, before.time.low);
}

// ---- details ----

TEST_F(Mouse, AClickOnALinkOfTheDetailsSelects) {
  window.show_panel("details");
  window.session().select_value(value("h5"));
  DetailsPanel& details = window.details();
  const auto click_link = [&](const QString& href) {
    for (QTextBlock block = details.document()->begin(); block.isValid(); block = block.next())
      for (auto part = block.begin(); !part.atEnd(); ++part) {
        if (part.fragment().charFormat().anchorHref() != href) continue;
        QTextCursor cursor(details.document());
        cursor.setPosition(part.fragment().position() + 1);
        details.setTextCursor(cursor);  // scrolls it into view
        details.ensureCursorVisible();
        const QPoint at = details.cursorRect(cursor).center();
        click_at(*details.viewport(), at);
        return true;
      }
    return false;
  };
  const NodeId reader = window.session().model()->values().entry(value("h5")).readers.front();
  ASSERT_TRUE(click_link(QStringLiteral("node:%1").arg(reader)));
  EXPECT_EQ(window.session().selection().node, reader);
  const ValueId operand = graph().inputs(graph().nodes[reader])[1];
  ASSERT_TRUE(click_link(QStringLiteral("value:%1").arg(operand)));
  EXPECT_EQ(window.session().selection().value, operand);
}

// ---- pictures ----

TEST_F(Mouse, ADoubleClickInAPictureShowsTheWholePlan) {
  for (const char* name : {"memory", "curve"}) {
    Canvas& canvas = *window.panel(name).canvas;
    const ImVec2 at = window.curve().place_of(30);
    wheel(canvas, at, 4);
    ASSERT_NE(window.session().view, window.session().model()->home()) << name;
    click(canvas, at);
    send_mouse(canvas, QEvent::MouseButtonDblClick, at, Qt::LeftButton);
    send_mouse(canvas, QEvent::MouseButtonRelease, at, Qt::LeftButton);
    settle(canvas);
    EXPECT_EQ(window.session().view, window.session().model()->home()) << name;
  }
}

// ---- palette and menus ----

TEST_F(Mouse, AClickInThePaletteRunsTheCommand) {
  press(window, Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
  ASSERT_NE(open_palette(window), nullptr);
  type(window, "peak");
  auto* list = open_palette(window)->findChild<QTreeWidget*>();
  QTreeWidgetItem* wanted = nullptr;
  for (int i = 0; i < list->topLevelItemCount(); ++i)
    if (list->topLevelItem(i)->data(0, Qt::UserRole).toString() == QStringLiteral("go.peak")) wanted = list->topLevelItem(i);
  ASSERT_NE(wanted, nullptr);
  QCoreApplication::processEvents();
  click_at(*list->viewport(), list->visualItemRect(wanted).center());
  EXPECT_EQ(window.session().selection().node, window.session().model()->peak_node());
  EXPECT_EQ(open_palette(window), nullptr);
}

TEST_F(Mouse, AClickInAMenuRunsTheCommand) {
  QMenuBar& bar = *window.menuBar();
  for (QAction* entry : bar.actions()) {
    if (entry->text() != QStringLiteral("&Go")) continue;
    click_at(bar, bar.actionGeometry(entry).center());
    auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
    ASSERT_NE(menu, nullptr);
    click_action(*menu, QStringLiteral("The peak"));
  }
  EXPECT_EQ(window.session().selection().node, window.session().model()->peak_node());
}

}  // namespace
}  // namespace tapedeck::viewer
