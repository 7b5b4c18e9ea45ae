// One Dear ImGui context with its fonts and its queue of input events. This file knows no windowing system.
//
// ImGui 1.86 reads the state of the mouse and the keys once per frame, so it would miss a press and a release between two
// frames. Events are therefore queued, and a frame takes only as many events as ImGui can tell apart. Later versions of ImGui
// do this themselves.
#pragma once

#include <tapedeck/viewer/drawing/frame_raster.h>
#include <tapedeck/viewer/drawing/picture.h>
#include <tapedeck/viewer/drawing/raster.h>
#include <tapedeck/viewer/words/colours.h>

#include <imgui.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck::viewer {

// The keys that pictures and text fields know.
enum class Key : int {
  none,
  tab,
  left,
  right,
  up,
  down,
  page_up,
  page_down,
  home,
  end,
  insert,
  erase,
  backspace,
  space,
  enter,
  escape,
  a,
  b,
  c,
  d,
  e,
  f,
  g,
  h,
  i,
  j,
  k,
  l,
  m,
  n,
  o,
  p,
  q,
  r,
  s,
  t,
  u,
  v,
  w,
  x,
  y,
  z,
  plus,
  minus,
  count
};

// One event of the mouse or the keyboard.
struct InputEvent {
  enum class Kind { move, leave, button, wheel, key, text, focus_lost };
  Kind kind = Kind::move;
  float x = 0, y = 0;  // the position, or the steps of the wheel
  int button = 0;      // 0 left, 1 right, 2 middle
  Key key = Key::none;
  unsigned character = 0;
  bool down = false;
  bool ctrl = false, shift = false, alt = false;
};

// The sizes of text: 11, 13 and 15 units.
enum class TextSize { small, body, title };
ImFont* font(TextSize size);  // a font of the current context
inline ImU32 to_imgui(Colour c) { return IM_COL32(c.r, c.g, c.b, c.a); }
inline ImU32 to_imgui(Colour c, int alpha) { return IM_COL32(c.r, c.g, c.b, alpha); }

// The shapes of the picture that is being drawn, and a filled rectangle among them.
inline ImDrawList* shapes() { return ImGui::GetWindowDrawList(); }
inline void fill_box(float x0, float y0, float x1, float y1, Colour colour) {
  shapes()->AddRectFilled(ImVec2(x0, y0), ImVec2(x1, y1), to_imgui(colour));
}

// A line of text of a frame, and the indices of its letters in the draw list.
struct DrawnText {
  const ImDrawList* list;
  int first, end;
  ImVec2 at;  // the upper left corner, in units
  TextSize size;
  float width;
  ImU32 colour;
  std::string text;
};
// Where the functions that draw text note each line; null: nowhere. Only an export needs the notes (picture_vectors.h).
inline std::vector<DrawnText>* text_notes = nullptr;

// Owns an ImGui context. Not thread safe: ImGui has one current context per process.
class ImGuiHost {
 public:
  struct Clipboard {
    std::function<std::string()> get;
    std::function<void(const std::string&)> set;
  };

  explicit ImGuiHost(double scale = 1);  // `scale`: device pixels per unit
  ~ImGuiHost();
  ImGuiHost(const ImGuiHost&) = delete;

  void make_current() const;
  void set_scale(double scale);  // takes other fonts if the scale changed
  bool fonts_changed();          // true once after each change of the fonts: a texture made from them is out of date
  void use_own_fonts();          // for a renderer that writes its texture id into them; else canvases share their fonts
  void set_clipboard(Clipboard clipboard) { clipboard_ = std::move(clipboard); }

  void queue(const InputEvent& event);
  bool input_waits() const { return !queue_.empty(); }  // true if the queue holds events
  bool wants_text() const;                              // true if a text field has the keyboard

  // Draws one frame of `picture`. The result is valid until the next frame.
  const ImDrawData& frame(Picture& picture, float width, float height, double seconds);
  // Draws the last frame into memory. If the memory holds the frame that was drawn by the call before, only the parts that
  // differ are drawn. Returns the parts that were drawn; valid until the next call.
  const std::vector<PixelBox>& rasterize_to(const Pixels& target);

 private:
  void take_fonts();
  void take_input();

  double scale_ = 1;
  bool owns_fonts_ = false;
  std::shared_ptr<ImFontAtlas> fonts_;
  ImGuiContext* context_ = nullptr;
  Theme theme_ = theme_in_use();
  bool fonts_changed_ = false;
  FrameRaster raster_;
  std::deque<InputEvent> queue_;
  Clipboard clipboard_;
  std::string clipboard_text_;
};

}  // namespace tapedeck::viewer
