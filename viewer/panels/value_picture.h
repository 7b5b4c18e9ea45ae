// A value as a picture: a heat map of its matrix, and a histogram of its elements.
#pragma once

#include <tapedeck/viewer/model/looked_at.h>

#include <QtCore/QRect>
#include <QtWidgets/QWidget>

namespace tapedeck::viewer {

class ValuePicture : public QWidget {
 public:
  explicit ValuePicture(QWidget* parent = nullptr);

  void show_value(LookedAt seen);  // of a value that cannot be looked at, the picture is empty
  void clear() { show_value({}); }
  const LookedAt& seen() const { return seen_; }

  QSize sizeHint() const override { return {400, 180}; }
  QSize minimumSizeHint() const override { return {200, 110}; }
  QRect map_area() const;                   // of the cells; empty if there are none
  QRect histogram_area() const;             // of the bars; empty if there are none
  QString text_at(const QPoint& at) const;  // what the tooltip says there; empty: nothing

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  int label_height() const;
  void paint_map(QPainter& painter) const;
  void paint_histogram(QPainter& painter) const;

  LookedAt seen_;
};

}  // namespace tapedeck::viewer
