// The canvas: passes Qt's events to ImGui, and ImGui's frames to the screen. With the rasteriser, paintEvent draws an image;
// with OpenGL, a child widget (GlSurface) draws through ImGui's own backend.
//
//   Qt event --> InputEvent --> ImGuiHost::queue --> frame --> rasteriser or GlSurface --> screen
#include <tapedeck/viewer/canvas.h>

#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/drawing/theme.h>

#include <backends/imgui_impl_opengl3.h>
#include <QtCore/QEvent>
#include <QtCore/QList>
#include <QtCore/QPointer>
#include <QtCore/QTimer>
#include <QtGui/QClipboard>
#include <QtGui/QFocusEvent>
#include <QtGui/QGuiApplication>
#include <QtGui/QInputMethodEvent>
#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QOffscreenSurface>
#include <QtGui/QOpenGLContext>
#include <QtGui/QOpenGLFunctions>
#include <QtGui/QPainter>
#include <QtGui/QSurfaceFormat>
#include <QtGui/QWheelEvent>
#include <QtOpenGLWidgets/QOpenGLWidget>

#include <algorithm>

namespace tapedeck::viewer {

namespace {

constexpr int kSettleFrames = 3;  // frames after an event: ImGui reacts to an event one or two frames later

Key to_key(int qt) {
  if (qt >= Qt::Key_A && qt <= Qt::Key_Z) return static_cast<Key>(static_cast<int>(Key::a) + qt - Qt::Key_A);
  switch (qt) {
    case Qt::Key_Tab:
      return Key::tab;
    case Qt::Key_Left:
      return Key::left;
    case Qt::Key_Right:
      return Key::right;
    case Qt::Key_Up:
      return Key::up;
    case Qt::Key_Down:
      return Key::down;
    case Qt::Key_PageUp:
      return Key::page_up;
    case Qt::Key_PageDown:
      return Key::page_down;
    case Qt::Key_Home:
      return Key::home;
    case Qt::Key_End:
      return Key::end;
    case Qt::Key_Insert:
      return Key::insert;
    case Qt::Key_Delete:
      return Key::erase;
    case Qt::Key_Backspace:
      return Key::backspace;
    case Qt::Key_Space:
      return Key::space;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      return Key::enter;
    case Qt::Key_Escape:
      return Key::escape;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
      return Key::plus;
    case Qt::Key_Minus:
      return Key::minus;
    default:
      return Key::none;
  }
}

InputEvent made(InputEvent::Kind kind, Qt::KeyboardModifiers modifiers) {
  InputEvent e;
  e.kind = kind;
  e.ctrl = modifiers.testFlag(Qt::ControlModifier);
  e.shift = modifiers.testFlag(Qt::ShiftModifier);
  e.alt = modifiers.testFlag(Qt::AltModifier);
  return e;
}

// A picture has its own units, as long as the scale of the look; a mouse has those of Qt.
float to_units(double length) { return static_cast<float>(length / look_in_use().scale); }

InputEvent moved(const QPointF& position, Qt::KeyboardModifiers modifiers) {
  InputEvent e = made(InputEvent::Kind::move, modifiers);
  e.x = to_units(position.x());
  e.y = to_units(position.y());
  return e;
}

InputEvent keyed(const QKeyEvent& event, bool down) {
  InputEvent e = made(InputEvent::Kind::key, event.modifiers());
  e.key = to_key(event.key());
  e.down = down;
  return e;
}

// The widgets that wait for a frame. They take turns, a pass of the event loop each: Qt paints all widgets that ask in one pass
// at once, and the frames of several large pictures together would be a long block.
class FrameTurns {
 public:
  void ask(QWidget* widget) {
    if (!waiting_.contains(widget)) waiting_.push_back(widget);
    if (!timer_) {
      timer_ = new QTimer(qApp);
      timer_->setSingleShot(true);
      timer_->setInterval(1);
      QObject::connect(timer_, &QTimer::timeout, qApp, [this] { next(); });
    }
    if (!timer_->isActive()) timer_->start();
  }

 private:
  void next() {
    while (!waiting_.isEmpty() && !waiting_.front()) waiting_.pop_front();
    if (waiting_.isEmpty()) return;
    waiting_.takeFirst()->update();
    if (!waiting_.isEmpty()) timer_->start();
  }

  QList<QPointer<QWidget>> waiting_;
  QPointer<QTimer> timer_;  // of the application
};

// Asks for a frame soon. Qt would merge a request made inside a paint event with that event. A posted event would draw the
// frame before the event loop looks for input, and together with all other work of a new plan.
void ask_for_frame(QWidget& canvas, QWidget* surface) {
  static FrameTurns turns;
  turns.ask(surface != nullptr ? surface : &canvas);
}

Pixels pixels_of(QImage* image) { return {reinterpret_cast<std::uint32_t*>(image->bits()), image->width(), image->height()}; }

}  // namespace

// The child widget that draws with ImGui's OpenGL backend. Mouse events pass through it to the canvas.
class Canvas::GlSurface : public QOpenGLWidget {
 public:
  GlSurface(Canvas& canvas) : QOpenGLWidget(&canvas), canvas_(canvas) { setAttribute(Qt::WA_TransparentForMouseEvents); }
  ~GlSurface() override {
    disconnect(lost_);  // otherwise the signal reaches a half-destroyed widget
    if (context() == nullptr) return;
    makeCurrent();
    shut_down();
    doneCurrent();
  }

 protected:
  void initializeGL() override {
    canvas_.host_->use_own_fonts();
    canvas_.host_->make_current();
    shut_down();
    ready_ = ImGui_ImplOpenGL3_Init(context()->isOpenGLES() ? "#version 300 es" : "#version 330 core");
    // Docking can destroy the context. A new context is set up in this function again.
    lost_ = connect(context(), &QOpenGLContext::aboutToBeDestroyed, this, guarded(this, [this] {
                      makeCurrent();
                      shut_down();
                      doneCurrent();
                    }));
  }
  void paintGL() override {
    if (!ready_) return;
    ImGuiHost& host = *canvas_.host_;
    host.make_current();
    host.set_scale(devicePixelRatioF() * look_in_use().scale);
    if (host.fonts_changed()) ImGui_ImplOpenGL3_DestroyFontsTexture();
    ImGui_ImplOpenGL3_NewFrame();
    const ImDrawData& drawn = host.frame(canvas_.picture_, to_units(width()), to_units(height()), canvas_.seconds());
    QOpenGLFunctions* gl = context()->functions();
    const Colour c = colours::kCanvas;
    gl->glClearColor(c.r / 255.0f, c.g / 255.0f, c.b / 255.0f, 1);
    gl->glClear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(const_cast<ImDrawData*>(&drawn));
    canvas_.after_frame();
  }

 private:
  void shut_down() {
    if (!ready_) return;
    canvas_.host_->make_current();
    ImGui_ImplOpenGL3_Shutdown();
    ready_ = false;
  }

  Canvas& canvas_;
  QMetaObject::Connection lost_;
  bool ready_ = false;
};

Renderer choose_renderer(Renderer wanted, std::string* why) {
  const auto chosen = [&](Renderer r, const std::string& text) {
    if (why != nullptr) *why = text;
    return r;
  };
  if (wanted == Renderer::soft) return chosen(Renderer::soft, "software");
  const QString platform = QGuiApplication::platformName();
  if (platform != "xcb" && !platform.startsWith("wayland")) return chosen(Renderer::soft, "software (no display)");
  QOpenGLContext context;
  QOffscreenSurface surface;
  surface.create();
  if (!context.create() || !context.makeCurrent(&surface)) return chosen(Renderer::soft, "software (no OpenGL)");
  const auto* name = reinterpret_cast<const char*>(context.functions()->glGetString(GL_RENDERER));
  const std::string gpu = name != nullptr ? name : "";
  const QSurfaceFormat format = context.format();
  context.doneCurrent();
  if (format.version() < qMakePair(3, 2)) return chosen(Renderer::soft, "software (OpenGL is older than 3.2)");
  if (wanted == Renderer::gl) return chosen(Renderer::gl, "OpenGL, " + gpu);
  const QString lower = QString::fromStdString(gpu).toLower();
  for (const char* software : {"llvmpipe", "softpipe", "swrast", "swiftshader", "software"}) {
    if (lower.contains(QLatin1String(software))) return chosen(Renderer::soft, "software (no GPU)");
  }
  return chosen(Renderer::gl, "OpenGL, " + gpu);
}

void prepare_opengl() {
  QSurfaceFormat format;
  format.setVersion(3, 3);
  format.setProfile(QSurfaceFormat::CoreProfile);
  QSurfaceFormat::setDefaultFormat(format);
  QCoreApplication::setAttribute(Qt::AA_ShareOpenGLContexts);  // docking then keeps the OpenGL contexts
}

Canvas::Canvas(Picture& picture, Renderer renderer, QWidget* parent)
    : QWidget(parent), picture_(picture), host_(std::make_unique<ImGuiHost>(devicePixelRatioF())) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAttribute(Qt::WA_InputMethodEnabled);
  setMinimumSize(160, 90);
  host_->set_clipboard({[] { return QGuiApplication::clipboard()->text().toStdString(); },
                        [](const std::string& text) { QGuiApplication::clipboard()->setText(QString::fromStdString(text)); }});
  if (renderer == Renderer::gl)
    surface_ = new GlSurface(*this);
  else
    setAttribute(Qt::WA_OpaquePaintEvent);
  clock_.start();
  refresh();
}

Canvas::~Canvas() { delete surface_; }  // the surface must go before the ImGui context that it draws with

void Canvas::refresh() {
  frames_due_ = kSettleFrames;
  ask_for_frame(*this, surface_);
}

bool Canvas::settled() const { return frames_due_ == 0 && !host_->input_waits(); }

double Canvas::seconds() { return static_cast<double>(clock_.restart()) / 1000; }

void Canvas::after_frame() {
  if (frames_due_ > 0) --frames_due_;
  if (settled()) return;
  ask_for_frame(*this, surface_);
}

void Canvas::paintEvent(QPaintEvent*) {
  if (surface_ != nullptr || left_out_) return;
  const double scale = devicePixelRatioF();
  host_->set_scale(scale * look_in_use().scale);
  host_->frame(picture_, to_units(width()), to_units(height()), seconds());
  const QSize size(std::max(qRound(width() * scale), 1), std::max(qRound(height() * scale), 1));
  if (image_.size() != size) image_ = QImage(size, QImage::Format_RGBX8888);
  image_.setDevicePixelRatio(scale);
  host_->rasterize_to(pixels_of(&image_));
  QPainter(this).drawImage(0, 0, image_);
  after_frame();
}

void Canvas::resizeEvent(QResizeEvent*) {
  if (surface_ != nullptr) surface_->setGeometry(rect());
  refresh();
}

bool Canvas::focusNextPrevChild(bool next) { return host_->wants_text() ? false : QWidget::focusNextPrevChild(next); }

QVariant Canvas::inputMethodQuery(Qt::InputMethodQuery query) const {
  return query == Qt::ImEnabled ? QVariant(host_->wants_text()) : QWidget::inputMethodQuery(query);
}

void Canvas::input(const InputEvent& event) {
  host_->queue(event);
  refresh();
}

// The mouse is in one canvas at a time. A canvas that it goes to does not rely on the other to have heard of that: two canvases
// that both believe to have the mouse would take the hovered value from each other, frame by frame.
void Canvas::take_mouse() {
  static QPointer<Canvas> has_mouse;
  if (has_mouse == this) return;
  if (has_mouse) has_mouse->input(made(InputEvent::Kind::leave, {}));
  has_mouse = this;
}

bool Canvas::handle(QEvent* event) {
  switch (event->type()) {
    case QEvent::MouseMove: {
      const auto* e = static_cast<QMouseEvent*>(event);
      take_mouse();
      input(moved(e->position(), e->modifiers()));
      return true;
    }
    case QEvent::MouseButtonPress:
    case QEvent::MouseButtonDblClick:  // Qt sends this instead of the second press
    case QEvent::MouseButtonRelease: {
      const auto* e = static_cast<QMouseEvent*>(event);
      take_mouse();
      input(moved(e->position(), e->modifiers()));
      InputEvent button = made(InputEvent::Kind::button, e->modifiers());
      button.button = e->button() == Qt::RightButton ? 1 : e->button() == Qt::MiddleButton ? 2 : 0;
      button.down = event->type() != QEvent::MouseButtonRelease;
      input(button);
      return true;
    }
    case QEvent::Wheel: {
      auto* e = static_cast<QWheelEvent*>(event);
      take_mouse();
      input(moved(e->position(), e->modifiers()));
      InputEvent wheel = made(InputEvent::Kind::wheel, e->modifiers());
      wheel.x = static_cast<float>(e->angleDelta().x()) / 120;
      wheel.y = static_cast<float>(e->angleDelta().y()) / 120;
      input(wheel);
      e->accept();
      return true;
    }
    case QEvent::PaletteChange:
    case QEvent::FontChange:  // another theme or scale
      refresh();
      return false;
    case QEvent::Leave:
      input(made(InputEvent::Kind::leave, {}));
      return false;
    case QEvent::FocusOut:
      input(made(InputEvent::Kind::focus_lost, {}));
      return false;
    case QEvent::ShortcutOverride:
      event->setAccepted(host_->wants_text());
      return event->isAccepted();
    case QEvent::KeyPress:
    case QEvent::KeyRelease: {
      const auto* e = static_cast<QKeyEvent*>(event);
      const InputEvent key = keyed(*e, event->type() == QEvent::KeyPress);
      if (!host_->wants_text()) return false;  // keys are commands of the window
      if (!(e->isAutoRepeat() && !key.down)) input(key);
      if (key.down)
        for (const QChar c : e->text()) {
          InputEvent typed = made(InputEvent::Kind::text, e->modifiers());
          typed.character = c.unicode();
          if (c.isPrint()) input(typed);
        }
      return true;
    }
    case QEvent::InputMethod:
      for (const QChar c : static_cast<QInputMethodEvent*>(event)->commitString()) {
        InputEvent typed = made(InputEvent::Kind::text, {});
        typed.character = c.unicode();
        input(typed);
      }
      return true;
    default:
      return false;
  }
}

bool Canvas::event(QEvent* event) { return handle(event) || QWidget::event(event); }

QImage render_picture(Picture& picture, int width, int height, double scale) {
  ImGuiHost host(scale);
  // A window inside the picture, such as a tooltip, has its final size from the second frame on.
  for (int i = 0; i < kSettleFrames; ++i) {
    host.frame(picture, static_cast<float>(width / scale), static_cast<float>(height / scale), 1.0 / 60);
    picture.settle();
  }
  QImage image(std::max(width, 1), std::max(height, 1), QImage::Format_RGBX8888);
  host.rasterize_to(pixels_of(&image));
  return image;
}

}  // namespace tapedeck::viewer
