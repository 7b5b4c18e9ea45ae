#include <tapedeck/viewer/export_picture.h>

#include <tapedeck/viewer/canvas.h>
#include <tapedeck/viewer/drawing/picture_vectors.h>
#include <tapedeck/viewer/drawing/theme.h>
#include <tapedeck/viewer/drawing/vector_painter.h>
#include <tapedeck/viewer/widget_vectors.h>

#include <tapedeck/capture/formats/atomic_write.h>

#include <QtCore/QBuffer>
#include <QtCore/QHashFunctions>
#include <QtGui/QPageSize>
#include <QtGui/QPainter>
#include <QtGui/QPdfWriter>
#include <QtWidgets/QDialog>

namespace tapedeck::viewer {

namespace {

constexpr int kDotsPerInch = 96;

std::string png(const QImage& image) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  image.convertToFormat(QImage::Format_RGB32).save(&buffer, "PNG");
  return bytes.toStdString();
}

// Puts a fixed time in the place of the time of writing. All bytes stay where the tables of the file say they are.
void fix_time(QByteArray& bytes) {
  const QByteArray mark("/CreationDate (");
  const qsizetype at = bytes.indexOf(mark), end = bytes.indexOf(')', at);
  if (at < 0 || end < 0) return;
  const QByteArray time = mark + "D:19700101000000Z)";
  bytes.replace(at, end + 1 - at, time.leftJustified(end + 1 - at, ' '));
}

// A PDF lists its fonts in the order of a hash table of Qt. While this object lives, hash tables that are made have one order
// in all processes.
struct OneHashOrder {
  OneHashOrder() { QHashSeed::setDeterministicGlobalSeed(); }
  ~OneHashOrder() { QHashSeed::resetRandomGlobalSeed(); }
  OneHashOrder(const OneHashOrder&) = delete;
};

std::string pdf(const VectorPicture& picture) {
  const OneHashOrder one_order;
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  {
    QPdfWriter writer(&buffer);
    writer.setCreator(QStringLiteral("tapedeck-viewer"));
    writer.setResolution(kDotsPerInch);
    const QSizeF inches(static_cast<double>(picture.width()) / kDotsPerInch,
                        static_cast<double>(picture.height()) / kDotsPerInch);
    writer.setPageSize(QPageSize(inches, QPageSize::Inch, QStringLiteral("picture"), QPageSize::ExactMatch));
    writer.setPageMargins(QMarginsF(0, 0, 0, 0));
    QPainter painter(&writer);
    paint(picture, painter);
  }
  fix_time(bytes);
  return bytes.toStdString();
}

std::string vectors(const std::string& path, const VectorPicture& picture) {
  return path.ends_with(".svg") ? to_svg(picture) : pdf(picture);
}

void write(const std::string& path, const std::string& bytes) {
  AtomicWriter writer(path);
  writer.write(bytes);
  writer.commit();
}

QImage pixels(QWidget& widget, int width, int height) {
  QImage image(width, height, QImage::Format_RGB32);
  image.fill(widget.palette().color(QPalette::Window));
  widget.render(&image);
  return image;
}

// The place of a dialog on a picture of its window, with a frame of one pixel around it.
QRect place_of_dialog(const QWidget& dialog, int width, int height) {
  QRect place(QPoint(0, 0), dialog.size().boundedTo(QSize(width - 2, height - 2)));
  place.moveCenter(QPoint(width / 2, height / 2));
  return place;
}

VectorPicture window_vectors(QWidget& window, int width, int height) {
  VectorPicture picture = widget_vectors(window, width, height);
  for (QWidget* dialog : open_dialogs(window)) {
    const QRect place = place_of_dialog(*dialog, width, height);
    const auto x = static_cast<float>(place.x()), y = static_cast<float>(place.y());
    const auto right = x + static_cast<float>(place.width()), bottom = y + static_cast<float>(place.height());
    picture.add(VectorRect{{x - 1, y - 1, right + 1, bottom + 1}, colours::kFaint});
    picture.set_clip({x, y, right, bottom});
    picture.add(widget_vectors(*dialog, place.width(), place.height()), x, y);
    picture.clear_clip();
  }
  return picture;
}

QImage window_pixels(QWidget& window, int width, int height) {
  QImage image = pixels(window, width, height);
  QPainter painter(&image);
  for (QWidget* dialog : open_dialogs(window)) {
    const QRect place = place_of_dialog(*dialog, width, height);
    painter.fillRect(place.adjusted(-1, -1, 1, 1), qt(colours::kFaint));
    painter.drawImage(place.topLeft(), pixels(*dialog, place.width(), place.height()));
  }
  return image;
}

}  // namespace

QList<QWidget*> open_dialogs(const QWidget& window) {
  QList<QWidget*> dialogs;
  for (QDialog* dialog : window.findChildren<QDialog*>())
    if (dialog->isWindow() && dialog->isVisible()) dialogs << dialog;
  return dialogs;
}

void export_window(const std::string& path, QWidget& window, int width, int height) {
  write(path, path.ends_with(".png") ? png(window_pixels(window, width, height))
                                     : vectors(path, window_vectors(window, width, height)));
}

void export_picture(const std::string& path, Picture& picture, int width, int height, double scale) {
  write(path, path.ends_with(".png") ? png(render_picture(picture, width, height, scale))
                                     : vectors(path, picture_vectors(picture, width, height, scale)));
}

void export_widget(const std::string& path, QWidget& widget, int width, int height) {
  write(path,
        path.ends_with(".png") ? png(pixels(widget, width, height)) : vectors(path, widget_vectors(widget, width, height)));
}

}  // namespace tapedeck::viewer
