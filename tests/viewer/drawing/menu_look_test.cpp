// Tests that the line between two commands of a menu can be seen in every theme.
#include <tapedeck/viewer/drawing/theme.h>

#include <gtest/gtest.h>
#include <QtGui/QImage>
#include <QtWidgets/QApplication>
#include <QtWidgets/QMenu>

#include <algorithm>
#include <cstdlib>

namespace tapedeck::viewer {
namespace {

int lightness_at(const QImage& image, const QPoint& at) { return qGray(image.pixel(at)); }

TEST(MenuLook, ASeparatorStandsOutFromItsGround) {
  for (int i = 0; i < kThemeCount; ++i) {
    const auto theme = static_cast<Theme>(i);
    apply_look(*qApp, {theme, 1});
    QMenu menu;
    menu.addAction(QStringLiteral("Above"));
    const QAction* line = menu.addSeparator();
    menu.addAction(QStringLiteral("Below"));
    menu.resize(menu.sizeHint());
    const QImage image = menu.grab().toImage();
    const QRect place = menu.actionGeometry(const_cast<QAction*>(line));
    const int ground = lightness_at(image, {place.center().x(), place.bottom() + 2});
    int most = 0;
    for (int y = place.top(); y <= place.bottom(); ++y)
      most = std::max(most, std::abs(lightness_at(image, {place.center().x(), y}) - ground));
    EXPECT_GE(most, 20) << theme_name(theme);
  }
  apply_look(*qApp, {});
}

}  // namespace
}  // namespace tapedeck::viewer
