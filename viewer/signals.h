// The signals that ask a program to end.
#pragma once

class QApplication;

namespace tapedeck::viewer {

// From now on SIGINT, SIGTERM and SIGHUP close all windows as a person does, so that what windows keep is kept; then
// QApplication::exec() returns. A second signal ends the process at once. Call once, before exec().
void close_on_signals(QApplication& app);

}  // namespace tapedeck::viewer
