// The look of the Qt side. It uses the same table of colours as the pictures.
#pragma once

class QApplication;

namespace tapedeck::viewer {

// Sets the style, the palette and the font of the application.
void apply_theme(QApplication& app);

}  // namespace tapedeck::viewer
