// Graph text in a scroll area. Only the lines in view are laid out and painted, so the length of the text does not matter.
#pragma once

#include <tapedeck/viewer/graph/text_rows.h>

#include <QtCore/QString>
#include <QtWidgets/QAbstractScrollArea>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck::viewer {

class CodeView : public QAbstractScrollArea {
 public:
  // A word under the mouse, and its line. `is_old`: the line is of the text before the step.
  struct Place {
    std::string word;
    WordKind kind = WordKind::plain;
    std::int32_t line = -1;
    bool is_old = false;
  };

  explicit CodeView(QWidget* parent = nullptr);

  void show_rows(TextRows rows);  // from the top
  const TextRows& rows() const { return rows_; }
  // Marks the word of the selected value, the line that defines it, and the word of the hovered value. Empty, -1: none.
  void mark(const std::string& selected, std::int32_t line, const std::string& hovered);
  void reveal_line(std::int32_t line);  // of the text after the step: scrolls to it, unless it is in view
  void go_to_row(std::int32_t row);     // scrolls to it, and puts the mark of the current row there
  std::int32_t current_row() const { return current_; }

  // Marks all rows that hold the text; the first at or after the current row becomes current. Returns their number.
  std::int32_t find(const std::string& query);
  void step_match(int by);
  std::int32_t find_count() const { return static_cast<std::int32_t>(matches_.size()); }
  std::int32_t match() const;  // the place of the current row among the matches, from 0; -1
  bool step_change(int by);    // false if there is no further change

  std::function<void(const Place&)> on_click, on_hover;
  std::function<QString(const Place&)> explain;  // the tooltip
  std::function<void()> on_find;                 // Ctrl+F

  std::int32_t first_row_in_view() const;
  std::int32_t rows_in_view() const;                                // whole ones
  QPoint middle_of(std::int32_t row, std::string_view word) const;  // in the viewport; REQUIRES the row has the word

 protected:
  bool event(QEvent* event) override;
  bool viewportEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;

 private:
  // A part of a line as it is painted: a word, or what stands between words.
  struct Piece {
    QString text;
    std::string_view bytes;
    WordKind kind = WordKind::plain;
    bool is_word = false;
    double x = 0, width = 0;
  };
  std::vector<Piece> pieces_of(const TextRow& row) const;
  void paint_row(QPainter& painter, std::int32_t row, int y) const;
  void paint_fold(QPainter& painter, const TextRow& row, int y) const;
  void set_bars();
  void set_font();
  int row_height() const;
  int gutter() const;
  std::int32_t row_at(int y) const;  // -1 below the last
  Place place_at(const QPoint& at) const;

  TextRows rows_;
  std::string selected_, hovered_, query_;
  std::int32_t selected_line_ = -1, current_ = -1;
  std::vector<std::int32_t> matches_;
  QPoint hover_at_{-1, -1};
};

}  // namespace tapedeck::viewer
