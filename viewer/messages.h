// Texts that come from files, shown as they are; and exceptions, shown as messages.
#pragma once

#include <QtCore/QString>
#include <QtWidgets/QApplication>

#include <string>
#include <type_traits>
#include <utility>

namespace tapedeck::viewer {

// A tooltip with exactly this text. Qt would take a text such as "<b>w</b>" for HTML, and names in a file may be such texts.
QString tooltip_of(const std::string& text);

// Shows an error without blocking, so that a test or a script can continue.
void show_error(QWidget* parent, const std::string& text);
// Shows the exception that is being handled. If a message of this function is still open, another one is not shown: a picture
// that cannot be drawn would give one for every frame.
void show_exception(QWidget* parent) noexcept;

// Wraps a slot. An exception must not leave a slot, because Qt's code between the signal and the slot cannot handle it: it
// becomes a message. The slot takes all arguments of its signal, or none.
template <class Slot>
auto guarded(QWidget* parent, Slot slot) {
  return [parent, slot = std::move(slot)](const auto&... arguments) {
    try {
      if constexpr (std::is_invocable_v<const Slot&, decltype(arguments)...>)
        slot(arguments...);
      else
        slot();
    } catch (...) {
      show_exception(parent);
    }
  };
}

// Exceptions of event handlers (drawing, the mouse, keys, dropped files) become messages too.
class Application : public QApplication {
 public:
  using QApplication::QApplication;
  bool notify(QObject* receiver, QEvent* event) override;
};

}  // namespace tapedeck::viewer
