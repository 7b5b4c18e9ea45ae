// A field for the filter of a table. What is wrong in the text is underlined there, and said under the field.
#pragma once

#include <tapedeck/viewer/words/filter.h>

#include <QtWidgets/QWidget>

#include <functional>

class QLabel;
class QLineEdit;

namespace tapedeck::viewer {

class FilterField : public QWidget {
 public:
  // `changed` is called with each new filter.
  FilterField(const TableLayout& layout, std::function<void()> changed, QWidget* parent = nullptr);

  const Filter& filter() const { return filter_; }
  QLineEdit* edit() { return edit_; }
  QString message() const;  // what stands under the field; empty if nothing is wrong

 private:
  void read();
  void mark();

  const TableLayout& layout_;
  std::function<void()> changed_;
  Filter filter_;
  QLineEdit* edit_;
  QLabel* message_;
};

}  // namespace tapedeck::viewer
