#include <tapedeck/viewer/signed_layout.h>

#include <tapedeck/viewer/settings.h>

#include <QtCore/QCryptographicHash>
#include <QtCore/QMessageAuthenticationCode>
#include <QtCore/QRandomGenerator>

#include <array>

namespace tapedeck::viewer {

namespace {

constexpr int kSignatureBytes = 32;

QByteArray known_key() { return user_settings().value(QStringLiteral("layout-key")).toByteArray(); }

QByteArray key() {
  if (QByteArray known = known_key(); !known.isEmpty()) return known;
  std::array<quint32, 8> words{};
  QRandomGenerator::system()->fillRange(words.data(), static_cast<qsizetype>(words.size()));
  const QByteArray made(reinterpret_cast<const char*>(words.data()), sizeof words);
  user_settings().setValue(QStringLiteral("layout-key"), made.toHex());
  return made.toHex();
}

QByteArray signature(const QByteArray& layout, const QByteArray& by) {
  return QMessageAuthenticationCode::hash(layout, by, QCryptographicHash::Sha256);
}

}  // namespace

std::string sign_layout(const QByteArray& layout) { return (signature(layout, key()) + layout).toBase64().toStdString(); }

QByteArray layout_if_signed(const std::string& text) {
  const QByteArray bytes = QByteArray::fromBase64(QByteArray::fromStdString(text)), by = known_key();
  const QByteArray layout = bytes.mid(kSignatureBytes);
  if (by.isEmpty() || bytes.size() <= kSignatureBytes || bytes.left(kSignatureBytes) != signature(layout, by)) return {};
  return layout;
}

}  // namespace tapedeck::viewer
