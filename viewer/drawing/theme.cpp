#include <tapedeck/viewer/drawing/theme.h>

#include <QtGui/QFontDatabase>
#include <QtGui/QPainter>
#include <QtGui/QPalette>
#include <QtWidgets/QApplication>
#include <QtWidgets/QProxyStyle>
#include <QtWidgets/QStyleFactory>
#include <QtWidgets/QStyleOptionComplex>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr int kFontPixels = 12;
constexpr double kScales[] = {0.75, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3};

Look in_use;

int scaled(double pixels) { return std::max(1, qRound(pixels * in_use.scale)); }

// Fusion with all its lengths scaled: icons, arrows, scroll bars, margins.
class ScaledStyle : public QProxyStyle {
 public:
  explicit ScaledStyle(double scale) : QProxyStyle(QStyleFactory::create(QStringLiteral("Fusion"))), scale_(scale) {}
  int pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const override {
    const int length = QProxyStyle::pixelMetric(metric, option, widget);
    return length > 1 ? std::max(1, qRound(length * scale_)) : length;
  }
  // Fusion's own frames, of fields and of boxes to check, cannot be seen on dark grounds.
  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override {
    QProxyStyle::drawPrimitive(element, option, painter, widget);
    if (element != PE_IndicatorCheckBox) return;
    painter->setPen(qt(option->state.testFlag(State_Enabled) ? colours::kFaint : colours::kDisabled));
    painter->setBrush(Qt::NoBrush);
    painter->drawRect(option->rect.adjusted(0, 0, -1, -1));
  }
  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                          const QWidget* widget) const override {
    QProxyStyle::drawComplexControl(control, option, painter, widget);
    if (control != CC_SpinBox) return;
    painter->setPen(qt(colours::kEdge));
    painter->setBrush(Qt::NoBrush);
    painter->drawRect(option->rect.adjusted(0, 0, -1, -1));
  }

 private:
  double scale_;
};

QPalette palette() {
  QPalette p;
  const std::pair<QPalette::ColorRole, Colour> roles[] = {{QPalette::Window, colours::kWindow},
                                                          {QPalette::WindowText, colours::kText},
                                                          {QPalette::Base, colours::kCanvas},
                                                          {QPalette::AlternateBase, colours::kAlternate},
                                                          {QPalette::Text, colours::kText},
                                                          {QPalette::PlaceholderText, colours::kPlaceholder},
                                                          {QPalette::Button, colours::kButton},
                                                          {QPalette::ButtonText, colours::kText},
                                                          {QPalette::ToolTipBase, colours::kPanel},
                                                          {QPalette::ToolTipText, colours::kText},
                                                          {QPalette::Highlight, colours::kHighlight},
                                                          {QPalette::HighlightedText, colours::kHighlightedText},
                                                          {QPalette::Link, colours::kLink}};
  for (const auto& [role, colour] : roles) p.setColor(role, qt(colour));
  for (QPalette::ColorRole role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    p.setColor(QPalette::Disabled, role, qt(colours::kDisabled));
  return p;
}

QString sheet() {
  QString text = QStringLiteral(
      "QToolTip { color: $text; background: $panel; border: 1px solid $frame; }"
      "QHeaderView::section { background: $panel; color: $faint; border: 0; border-right: 1px solid $edge; padding: $3px $14px "
      "$3px $6px; "
      "}"
      "QTableView, QTextBrowser, QTreeWidget, QLineEdit, #palette { border: 1px solid $edge; }"
      "#palette { background: $window; }"
      "QDockWidget::title { background: $panel; padding: $4px $8px; }"
      "QStatusBar::item { border: 0; }"
      "QMainWindow::separator { background: $separator; width: $4px; height: $4px; }");
  for (int pixels : {3, 4, 6, 8, 14})
    text.replace(QStringLiteral("$%1px").arg(pixels), QStringLiteral("%1px").arg(scaled(pixels)));
  const std::pair<const char*, Colour> names[] = {
      {"$window", colours::kWindow}, {"$text", colours::kText}, {"$panel", colours::kPanel},        {"$frame", colours::kFrame},
      {"$faint", colours::kFaint},   {"$edge", colours::kEdge}, {"$separator", colours::kSeparator}};
  for (const auto& [name, colour] : names) text.replace(QString::fromLatin1(name), QString::fromStdString(html_colour(colour)));
  return text;
}

QFont font_of(const QApplication& app) {
  QFont font = app.font();
  if (QFontDatabase::hasFamily(QStringLiteral("DejaVu Sans"))) font.setFamily(QStringLiteral("DejaVu Sans"));
  font.setPixelSize(scaled(kFontPixels));
  return font;
}

}  // namespace

void apply_look(QApplication& app, const Look& look) {
  static bool first = true;
  const Look before = std::exchange(in_use, {look.theme, std::clamp(look.scale, kLeastScale, kMostScale)});
  if (!first && before == in_use) return;
  use_theme(in_use.theme);
  if (first || before.scale != in_use.scale) app.setStyle(new ScaledStyle(in_use.scale));
  first = false;
  app.setPalette(palette());
  app.setFont(font_of(app));
  app.setStyleSheet(sheet());
}

const Look& look_in_use() { return in_use; }

double stepped_scale(double scale, int steps) {
  const auto* at = std::min_element(std::begin(kScales), std::end(kScales),
                                    [&](double a, double b) { return std::abs(a - scale) < std::abs(b - scale); });
  const auto index = std::clamp<std::ptrdiff_t>(at - std::begin(kScales) + steps, 0, std::ssize(kScales) - 1);
  return kScales[index];
}

}  // namespace tapedeck::viewer
