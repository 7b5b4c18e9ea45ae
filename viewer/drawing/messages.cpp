#include <tapedeck/viewer/drawing/messages.h>

#include <QtCore/QPointer>
#include <QtWidgets/QMessageBox>

#include <cstdio>
#include <exception>

namespace tapedeck::viewer {

namespace {

QMessageBox* open_box(QWidget* parent, const std::string& text) {
  auto* box =
      new QMessageBox(QMessageBox::Critical, QStringLiteral("Tapedeck"), QString::fromStdString(text), QMessageBox::Ok, parent);
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setTextFormat(Qt::PlainText);
  box->open();
  return box;
}

std::string text_of_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return "Out of memory.";
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "An error of an unknown kind.";
  }
}

}  // namespace

std::string escaped_html(const std::string& text) { return QString::fromStdString(text).toHtmlEscaped().toStdString(); }

QString tooltip_of(const std::string& text) {
  if (text.empty()) return {};
  return QStringLiteral("<p style='white-space:pre-wrap'>%1</p>").arg(QString::fromStdString(text).toHtmlEscaped());
}

void show_error(QWidget* parent, const std::string& text) { open_box(parent, text); }

void show_exception(QWidget* parent) noexcept {
  static QPointer<QMessageBox> shown;
  try {
    const std::string text = text_of_exception();
    std::fprintf(stderr, "tapedeck-viewer: %s\n", text.c_str());
    if (!shown) shown = open_box(parent, text);
  } catch (...) {
    std::fputs("tapedeck-viewer: an error, and no memory to show it\n", stderr);
  }
}

bool Application::notify(QObject* receiver, QEvent* event) {
  try {
    return QApplication::notify(receiver, event);
  } catch (...) {
    show_exception(activeWindow());
    return false;
  }
}

}  // namespace tapedeck::viewer
