#include <tapedeck/viewer/tables/filter_field.h>

#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/drawing/theme.h>
#include <tapedeck/viewer/words/colours.h>

#include <QtCore/QCoreApplication>
#include <QtGui/QInputMethodEvent>
#include <QtGui/QTextCharFormat>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QVBoxLayout>

#include <utility>

namespace tapedeck::viewer {

namespace {

// How to write a filter, with the columns of this table.
std::string help_of(const TableLayout& layout) {
  std::string text = "All terms must hold:\nword, \"two words\"   in a name, an op, a type\n";
  for (const Column& column : layout.columns) {
    const std::string key = column.key;
    text += key +
            (column.kind == ColumnKind::bytes   ? ">16k   k M G, KiB MiB GiB: 1024s; kB MB GB: 1000s"
             : column.kind == ColumnKind::us    ? "<5ms   ns us ms s"
             : column.kind == ColumnKind::count ? ">1"
                                                : ":word") +
            "\n";
  }
  for (const char* flag : layout.flags) text += "is:" + std::string(flag) + "\n";
  return text + "-term   the term does not hold";
}

int utf16_length(std::string_view text) {
  return static_cast<int>(QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())).size());
}

}  // namespace

FilterField::FilterField(const TableLayout& layout, std::function<void()> changed, QWidget* parent)
    : QWidget(parent),
      layout_(layout),
      changed_(std::move(changed)),
      filter_("", layout),
      edit_(new QLineEdit),
      message_(new QLabel) {
  edit_->setPlaceholderText(layout.column("op") >= 0
                                ? QStringLiteral("Filter: conv  op:matmul  bytes>1MiB  us>100  is:clone  -type:f16")
                                : QStringLiteral("Filter: conv  bytes>1MiB  -name:bias"));
  edit_->setClearButtonEnabled(true);
  edit_->setAccessibleName(QString::fromStdString(std::string("filter of ") + layout.name));
  edit_->setToolTip(tooltip_of(help_of(layout)));
  message_->setTextFormat(Qt::PlainText);
  message_->setWordWrap(true);
  message_->hide();
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(3);
  column->addWidget(edit_);
  column->addWidget(message_);
  connect(edit_, &QLineEdit::textChanged, this, guarded(this, [this] { read(); }));
}

QString FilterField::message() const { return message_->isHidden() ? QString() : message_->text(); }

void FilterField::read() {
  filter_ = Filter(edit_->text().toStdString(), layout_);
  QString text;
  bool wrong = false;
  for (const FilterProblem& problem : filter_.problems()) {
    text += (text.isEmpty() ? QString() : QStringLiteral("\n")) + QString::fromStdString(problem.text);
    wrong = wrong || !problem.unfinished;
  }
  message_->setText(text);
  QPalette palette = message_->palette();
  palette.setColor(QPalette::WindowText, qt(wrong ? colours::kBudget : colours::kFaint));
  message_->setPalette(palette);
  message_->setVisible(!text.isEmpty());
  mark();
  changed_();
}

// A line edit shows formats only for text that an input method is composing; an event of that kind, without any text, sets
// them.
void FilterField::mark() {
  const std::string text = edit_->text().toStdString();
  QList<QInputMethodEvent::Attribute> marks;
  for (const FilterProblem& problem : filter_.problems()) {
    if (problem.unfinished) continue;
    QTextCharFormat format;
    format.setUnderlineStyle(QTextCharFormat::SingleUnderline);
    format.setUnderlineColor(qt(colours::kBudget));
    format.setForeground(qt(colours::kBudget));
    const int begin = utf16_length(std::string_view(text).substr(0, problem.begin));
    const int length = utf16_length(std::string_view(text).substr(problem.begin, problem.length));
    marks.append({QInputMethodEvent::TextFormat, begin - edit_->cursorPosition(), length, format});
  }
  QInputMethodEvent event(QString(), marks);
  QCoreApplication::sendEvent(edit_, &event);
}

}  // namespace tapedeck::viewer
