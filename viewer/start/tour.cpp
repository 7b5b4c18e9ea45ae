// The card stands in the corner of the window where it hides least of the framed widget.
#include <tapedeck/viewer/start/tour.h>

#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/words/colours.h>

#include <QtCore/QEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QVBoxLayout>

#include <algorithm>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr int kCardLetters = 52;  // in a line of the card
constexpr int kMsToWatch = 150;   // between two looks at the task

// A frame that lets all events through to what lies under it.
class Frame : public QWidget {
 public:
  explicit Frame(QWidget* window) : QWidget(window) { setAttribute(Qt::WA_TransparentForMouseEvents); }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    const int thick = std::max(3, fontMetrics().height() / 5);
    const Colour c = colours::kSelect;
    painter.setPen(QPen(QColor(c.r, c.g, c.b), thick));
    painter.drawRect(rect().adjusted(thick / 2, thick / 2, -(thick + 1) / 2, -(thick + 1) / 2));
  }
};

QLabel* make_label(QVBoxLayout& column, bool bold) {
  auto* label = new QLabel;
  label->setTextFormat(Qt::PlainText);
  label->setWordWrap(true);
  if (bold) {
    QFont font;
    font.setBold(true);
    label->setFont(font);
  }
  column.addWidget(label);
  return label;
}

int common_area(const QRect& a, const QRect& b) {
  const QRect both = a.intersected(b);
  return both.isEmpty() ? 0 : both.width() * both.height();
}

}  // namespace

Tour::Tour(QWidget& window) : QFrame(&window), frame_(new Frame(&window)) {
  setObjectName(QStringLiteral("tour"));
  setFrameShape(QFrame::Box);
  setAutoFillBackground(true);
  auto* column = new QVBoxLayout(this);
  title_ = make_label(*column, true);
  text_ = make_label(*column, false);
  task_ = make_label(*column, true);
  auto* buttons = new QHBoxLayout;
  column->addLayout(buttons);
  const auto add = [&](const char* text, const char* help, auto slot) {
    auto* button = new QPushButton(QString::fromLatin1(text));
    button->setToolTip(tooltip_of(help));
    buttons->addWidget(button);
    connect(button, &QPushButton::clicked, this, guarded(this, slot));
    return button;
  };
  end_ = add("End tour", "End the tour (Esc). The menu Help begins it again.", [this] { end(); });
  buttons->addStretch(1);
  back_ = add("Back", "Show the step before.", [this] { go(step_ - 1); });
  next_ = add("Next", "Show the next step, whether or not you have done what this one asks for.", [this] { go(step_ + 1); });
  connect(&watch_, &QTimer::timeout, this, guarded(this, [this] { watch(); }));
  window.installEventFilter(this);
  hide();
  frame_->hide();
}

void Tour::begin(std::vector<TourStep> steps) {
  steps_ = std::move(steps);
  go(0);
}

void Tour::go(int step) {
  if (step < 0 || step >= count()) return end();
  step_ = step;
  done_ = false;
  const TourStep& now = steps_[static_cast<std::size_t>(step)];
  target_ = now.show ? now.show() : nullptr;
  title_->setText(QString::fromStdString(std::to_string(step + 1) + " of " + std::to_string(count()) + ": " + now.title));
  text_->setText(QString::fromStdString(now.text));
  show_task();
  back_->setEnabled(step > 0);
  next_->setText(step + 1 == count() ? QStringLiteral("Finish") : QStringLiteral("Next"));
  now.done ? watch_.start(kMsToWatch) : watch_.stop();
  show();
  place();
}

void Tour::end() {
  step_ = -1;
  target_ = nullptr;
  watch_.stop();
  frame_->hide();
  hide();
}

void Tour::watch() {
  if (!runs() || done_ || !steps_[static_cast<std::size_t>(step_)].done()) return;
  done_ = true;
  watch_.stop();
  show_task();
  place();
}

void Tour::show_task() {
  const std::string& task = steps_[static_cast<std::size_t>(step_)].task;
  task_->setVisible(!task.empty());
  task_->setText(QString::fromStdString((done_ ? "✓ Done: " : "Try it: ") + task));
}

void Tour::place() {
  const QWidget& window = *parentWidget();
  const int margin = fontMetrics().height();
  setFixedWidth(std::min(kCardLetters * fontMetrics().averageCharWidth(), window.width() - 2 * margin));
  const int tall = layout()->hasHeightForWidth() ? layout()->totalHeightForWidth(width()) : sizeHint().height();
  resize(width(), tall);
  QRect framed;
  if (target_ != nullptr && target_->isVisible()) framed = {target_->mapTo(&window, QPoint(0, 0)), target_->size()};
  frame_->setVisible(!framed.isEmpty());
  frame_->setGeometry(framed);
  const int right = window.width() - width() - margin, bottom = window.height() - tall - 3 * margin;
  const QPoint corners[] = {{right, bottom}, {margin, bottom}, {right, 4 * margin}, {margin, 4 * margin}};
  move(*std::min_element(std::begin(corners), std::end(corners), [&](const QPoint& a, const QPoint& b) {
    return common_area(framed, {a, size()}) < common_area(framed, {b, size()});
  }));
  frame_->raise();
  raise();
}

bool Tour::eventFilter(QObject* watched, QEvent* event) {
  if (watched == parentWidget() && runs() && (event->type() == QEvent::Resize || event->type() == QEvent::LayoutRequest))
    place();
  return QFrame::eventFilter(watched, event);
}

}  // namespace tapedeck::viewer
