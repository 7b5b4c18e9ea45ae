// A handler of a signal may do almost nothing, so it writes a byte into a pipe, and the event loop reads it.
#include <tapedeck/viewer/signals.h>

#include <tapedeck/viewer/drawing/messages.h>

#include <QtCore/QSocketNotifier>
#include <QtWidgets/QApplication>

#include <fcntl.h>
#include <unistd.h>
#include <csignal>

namespace tapedeck::viewer {

namespace {

int ends[2];  // of the pipe: to read, to write

void note_signal(int signal) {
  const char byte = 0;
  if (::write(ends[1], &byte, 1) != 1) _exit(128 + signal);
}

}  // namespace

void close_on_signals(QApplication& app) {
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;  // the signals then end the process, as they did
  auto* notifier = new QSocketNotifier(ends[0], QSocketNotifier::Read, &app);
  QObject::connect(notifier, &QSocketNotifier::activated, &app, guarded(nullptr, [&app] {
                     app.closeAllWindows();
                     app.quit();
                   }));
  struct sigaction action = {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);  // the second signal finds the default: it ends the process
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

}  // namespace tapedeck::viewer
