#include <tapedeck/viewer/drawing/imgui_host.h>
#include <tapedeck/viewer/drawing/shared_fonts.h>

#include <gtest/gtest.h>

namespace tapedeck::viewer {
namespace {

ImFontAtlas* fonts_of(const ImGuiHost& host) {
  host.make_current();
  return ImGui::GetIO().Fonts;
}

TEST(SharedFonts, CanvasesOfOneScaleShareTheirLetters) {
  ImGuiHost a(1.5), b(1.5), c(2);
  EXPECT_EQ(fonts_of(a), fonts_of(b));
  EXPECT_NE(fonts_of(a), fonts_of(c));
  c.set_scale(1.5);
  EXPECT_EQ(fonts_of(a), fonts_of(c));
}

TEST(SharedFonts, EachScaleHasLettersOfItsSize) {
  for (const double scale : {1.0, 1.5, 2.0}) {
    const auto fonts = shared_fonts(scale);
    ASSERT_EQ(fonts->Fonts.Size, 3);
    EXPECT_EQ(fonts->Fonts[0]->FontSize, static_cast<float>(static_cast<int>(11 * scale + 0.5)));
    EXPECT_EQ(fonts->Fonts[2]->FontSize, static_cast<float>(static_cast<int>(15 * scale + 0.5)));
    EXPECT_TRUE(fonts->IsBuilt());
    EXPECT_NE(fonts->TexID, ImTextureID{});
  }
}

// OpenGL writes the number of a texture into the fonts, which differs from window to window.
TEST(SharedFonts, ARendererWithItsOwnTextureDoesNotShare) {
  ImGuiHost gl, soft;
  gl.use_own_fonts();
  EXPECT_NE(fonts_of(gl), fonts_of(soft));
  EXPECT_TRUE(gl.fonts_changed());
  gl.use_own_fonts();
  EXPECT_FALSE(gl.fonts_changed());
  gl.set_scale(2);
  EXPECT_NE(fonts_of(gl), shared_fonts(2).get());
}

TEST(SharedFonts, OutliveTheCanvasThatBuiltThem) {
  const ImFontAtlas* built;
  {
    ImGuiHost first(3);
    built = fonts_of(first);
  }
  ImGuiHost second(3);
  EXPECT_EQ(fonts_of(second), built);
}

}  // namespace
}  // namespace tapedeck::viewer
