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
// The same text inside of HTML.
std::string escaped_html(const std::string& text);

// Shows an error without blocking, so that a test or a script can continue.
void show_error(QWidget* parent, const std::string& text);
// Shows the exception that is being handled. If a message of this function is still open, another one is not shown: a picture
// that cannot be drawn would give one for every frame.
void show_exception(QWidget* parent) noexcept;

// A slot that lets no exception out, because Qt's code between the signal and the slot cannot handle it: the exception becomes
// a message. The slot takes all arguments of its signal, or none.
template <class Slot>
class Guarded {
  template <class... Arguments>
  static constexpr bool kTakes = std::is_invocable_v<const Slot&, const Arguments&...>;

 public:
  Guarded(QWidget* parent, Slot slot) : parent_(parent), slot_(std::move(slot)) {}

  template <class... Arguments, class = std::enable_if_t<kTakes<Arguments...> || kTakes<>>>
  void operator()(const Arguments&... arguments) const {
    try {
      if constexpr (kTakes<Arguments...>)
        slot_(arguments...);
      else
        slot_();
    } catch (...) {
      show_exception(parent_);
    }
  }

 private:
  QWidget* parent_;
  Slot slot_;
};

template <class Slot>
Guarded<Slot> guarded(QWidget* parent, Slot slot) {
  return {parent, std::move(slot)};
}

// Exceptions of event handlers (drawing, the mouse, keys, dropped files) become messages too.
class Application : public QApplication {
 public:
  using QApplication::QApplication;
  bool notify(QObject* receiver, QEvent* event) override;
};

}  // namespace tapedeck::viewer
