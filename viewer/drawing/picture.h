// A picture is a function of the session that Dear ImGui draws inside a canvas. It is drawn again after every change. Pictures
// know ImGui and no Qt; a canvas (canvas.h) gives them pixels and input.
#pragma once

namespace tapedeck::viewer {

// The interface of all pictures.
class Picture {
 public:
  virtual ~Picture() = default;
  // Draws the picture. ImGui has begun a frame, and a window of this size at (0, 0) is current.
  virtual void draw(float width, float height) = 0;
  // Waits for what a thread makes for the last frame, so that the next frame has it. Exports call it.
  virtual void settle() {}
};

// The renderers of a canvas: the rasteriser (soft), OpenGL (gl), or the better of both for the machine.
enum class Renderer { automatic, gl, soft };

}  // namespace tapedeck::viewer
