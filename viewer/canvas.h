// A canvas shows a picture inside a Qt window. No other file knows both Qt and ImGui. Two renderers draw the same frame: the
// rasteriser of raster.h, into an image, and OpenGL. A canvas draws frames only after something has changed.
#pragma once

#include <tapedeck/viewer/drawing/imgui_host.h>
#include <tapedeck/viewer/drawing/picture.h>

#include <QtCore/QElapsedTimer>
#include <QtGui/QImage>
#include <QtWidgets/QWidget>

#include <memory>
#include <string>

namespace tapedeck::viewer {

// The renderer for this machine: `wanted`, or a choice if `wanted` is automatic. The choice is OpenGL if there is a real
// display, OpenGL 3.2 or later, and a GPU; a software OpenGL is slower than the rasteriser. `*why` (may be null) gets a few
// words for the status bar. REQUIRES a QApplication.
Renderer choose_renderer(Renderer wanted, std::string* why);

// Sets what OpenGL contexts need. REQUIRES that there is no QApplication yet.
void prepare_opengl();

// The widget of one picture. Only the UI thread may use it.
class Canvas : public QWidget {
 public:
  // `picture` must outlive the canvas. `renderer` must not be automatic.
  Canvas(Picture& picture, Renderer renderer, QWidget* parent = nullptr);
  ~Canvas() override;

  void refresh();        // draws again soon; call after a change
  bool settled() const;  // true if no frame is left to draw
  Picture& picture() { return picture_; }
  void leave_out(bool out) { left_out_ = out; }  // true: paints nothing, because something else draws the picture

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool focusNextPrevChild(bool next) override;
  QVariant inputMethodQuery(Qt::InputMethodQuery query) const override;

 private:
  class GlSurface;
  bool handle(QEvent* event);
  void input(const InputEvent& event);
  void take_mouse();
  double seconds();  // the seconds since the last frame
  void after_frame();

  Picture& picture_;
  std::unique_ptr<ImGuiHost> host_;
  GlSurface* surface_ = nullptr;  // null if the renderer is the rasteriser
  QImage image_;                  // the last frame of the rasteriser
  QElapsedTimer clock_;
  int frames_due_ = 0;
  bool left_out_ = false;
};

// Draws a picture without any window: width x height pixels, `scale` pixels per unit.
QImage render_picture(Picture& picture, int width, int height, double scale = 1);

}  // namespace tapedeck::viewer
