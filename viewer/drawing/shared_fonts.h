// The fonts of pictures, rendered once for each scale of the screen and shared by all canvases: to render them takes longer
// than to draw a picture.
#pragma once

#include <imgui.h>

#include <memory>

namespace tapedeck::viewer {

// The letters of three sizes (11, 13 and 15 units), at `scale` pixels per unit, built and with a texture id that is not null.
// Without the font files of this machine the letters are those of ImGui. Callers do not change the atlas. The atlas asked for
// last stays in memory; others go with their last user. For the thread of the user interface.
std::shared_ptr<ImFontAtlas> shared_fonts(double scale);

// The same letters in an atlas of its own, for a renderer that writes its texture id into the atlas.
std::shared_ptr<ImFontAtlas> own_fonts(double scale);

}  // namespace tapedeck::viewer
