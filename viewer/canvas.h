// A picture inside a Qt window: the only place that knows both toolkits. Two renderers draw the same frame: our rasteriser into
// an image, and OpenGL. Frames are drawn when something happened, none while idle.
#pragma once

#include <tapedeck/viewer/imgui_host.h>
#include <tapedeck/viewer/picture.h>

#include <QtCore/QElapsedTimer>
#include <QtGui/QImage>
#include <QtWidgets/QWidget>

#include <memory>
#include <string>

namespace tapedeck::viewer {

// What `automatic` comes to here: OpenGL needs a real display, version 3.2 and a GPU; drawing by a software OpenGL is slower
// than ours. `why` (may be null) gets a few words for the status bar. Call after QApplication exists.
Renderer choose_renderer(Renderer wanted, std::string* why);

class Canvas : public QWidget {
 public:
  // `picture` outlives the canvas. `renderer` is not automatic.
  Canvas(Picture& picture, Renderer renderer, QWidget* parent = nullptr);
  ~Canvas() override;

  void refresh();        // something changed: draw again soon
  bool settled() const;  // no frame is due
  Picture& picture() { return picture_; }

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
  double seconds();  // since the last frame
  void after_frame();

  Picture& picture_;
  std::unique_ptr<ImGuiHost> host_;
  GlSurface* surface_ = nullptr;  // null: software
  QElapsedTimer clock_;
  int frames_due_ = 0;
};

// A picture without any window: width x height pixels at `scale` pixels per unit.
QImage render_picture(Picture& picture, int width, int height, double scale = 1);

}  // namespace tapedeck::viewer
