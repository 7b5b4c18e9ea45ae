// The look of the windows: theme and scale. The Qt side uses the same table of colours as the pictures.
#pragma once

#include <tapedeck/viewer/words/colours.h>

#include <QtGui/QColor>

class QApplication;
class QWidget;

namespace tapedeck::viewer {

inline QColor qt(Colour c) { return QColor(c.r, c.g, c.b, c.a); }

// The theme, and how large everything is: 1 is the normal size.
struct Look {
  Theme theme = Theme::dark;
  double scale = 1;
  bool operator==(const Look& o) const { return theme == o.theme && scale == o.scale; }
};
inline constexpr double kLeastScale = 0.75, kMostScale = 3;

// Sets style, palette and font of the application. Open windows change at once, and pictures are drawn again. The
// scale is moved into the range from kLeastScale to kMostScale.
void apply_look(QApplication& app, const Look& look);
const Look& look_in_use();
// Sets the colour of the text of a widget, which then does not follow the theme.
void set_text_colour(QWidget& widget, Colour colour);
// The next larger scale (steps > 0) or the next smaller one.
double stepped_scale(double scale, int steps);

}  // namespace tapedeck::viewer
