#include <tapedeck/viewer/drawing/theme.h>

#include <tapedeck/viewer/drawing/window_style.h>

#include <QtCore/QEvent>
#include <QtGui/QFontDatabase>
#include <QtGui/QPalette>
#include <QtWidgets/QApplication>
#include <QtWidgets/QStyle>
#include <QtWidgets/QToolTip>
#include <QtWidgets/QWidget>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr int kFontPixels = 12;
constexpr double kScales[] = {0.75, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3};

Look in_use;

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

QFont font_of(const QApplication& app) {
  QFont font = app.font();
  if (QFontDatabase::hasFamily(QStringLiteral("DejaVu Sans"))) font.setFamily(QStringLiteral("DejaVu Sans"));
  font.setPixelSize(std::max(1, qRound(kFontPixels * in_use.scale)));
  return font;
}

// Qt itself tells widgets of another style, palette or font only while the application handles events, and not before.
void tell_widgets(QEvent::Type change) {
  for (QWidget* widget : QApplication::allWidgets()) {
    if (change == QEvent::StyleChange) QApplication::style()->polish(widget);
    QEvent event(change);
    QCoreApplication::sendEvent(widget, &event);
  }
}

}  // namespace

void apply_look(QApplication& app, const Look& look) {
  static bool first = true;
  const Look before = std::exchange(in_use, {look.theme, std::clamp(look.scale, kLeastScale, kMostScale)});
  if (!first && before == in_use) return;
  use_theme(in_use.theme);
  const bool is_scaled = first || before.scale != in_use.scale;
  first = false;
  if (is_scaled) app.setStyle(new WindowStyle(in_use.scale));
  app.setPalette(palette());
  QToolTip::setPalette(palette());
  app.setFont(font_of(app));
  if (is_scaled) tell_widgets(QEvent::StyleChange);
  tell_widgets(QEvent::ApplicationFontChange);
  tell_widgets(QEvent::ApplicationPaletteChange);
}

const Look& look_in_use() { return in_use; }

void set_text_colour(QWidget& widget, Colour colour) {
  QPalette changed;
  changed.setColor(QPalette::WindowText, qt(colour));
  widget.setPalette(changed);
}

double stepped_scale(double scale, int steps) {
  const auto* at = std::min_element(std::begin(kScales), std::end(kScales),
                                    [&](double a, double b) { return std::abs(a - scale) < std::abs(b - scale); });
  const auto index = std::clamp<std::ptrdiff_t>(at - std::begin(kScales) + steps, 0, std::ssize(kScales) - 1);
  return kScales[index];
}

}  // namespace tapedeck::viewer
