// The layout of panels in a session file. It is a state of QMainWindow, and Qt crashes on some states that are damaged. So a
// layout is signed with a key in the settings of the person, and nobody else's layout is given to Qt.
#pragma once

#include <QtCore/QByteArray>

#include <string>

namespace tapedeck::viewer {

// The signature and the layout, in base64. Makes the key where there is none.
std::string sign_layout(const QByteArray& layout);
// The layout of such a text; empty if another person, or nobody, signed it.
QByteArray layout_if_signed(const std::string& text);

}  // namespace tapedeck::viewer
