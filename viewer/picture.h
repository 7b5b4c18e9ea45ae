// A picture is what Dear ImGui draws inside a canvas: a function of the session, drawn again whenever something changed.
// Pictures know ImGui and no Qt; a canvas (canvas.h) gives them pixels and input.
#pragma once

namespace tapedeck::viewer {

class Picture {
 public:
  virtual ~Picture() = default;
  // Inside an ImGui frame; the picture's own window of that size, at (0, 0), is current.
  virtual void draw(float width, float height) = 0;
};

// What draws the frames: our rasteriser, OpenGL, or whichever suits the machine.
enum class Renderer { automatic, gl, soft };

}  // namespace tapedeck::viewer
