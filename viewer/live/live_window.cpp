#include <tapedeck/viewer/live/live_window.h>

#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/words/format.h>

#include <fmt/format.h>

#include <QtCore/QDateTime>
#include <QtGui/QShortcut>
#include <QtWidgets/QCheckBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QStackedWidget>
#include <QtWidgets/QTableView>
#include <QtWidgets/QTreeWidget>
#include <QtWidgets/QVBoxLayout>

#include <algorithm>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr int kTickMs = 100, kTicksOfList = 10, kTicksOfModules = 5;

QString qt_text(const std::string& text) { return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())); }

// Names of programs, modules and files come from outside, so they are no HTML.
QLabel* plain_label(QWidget* parent) {
  auto* label = new QLabel(parent);
  label->setTextFormat(Qt::PlainText);
  label->setWordWrap(true);
  return label;
}

// The document reads its file again when it is replayed, so the folder stays until the viewer ends: the next viewer removes it.
void keep_until_exit(const std::string& folder) {
  static std::vector<live::Descriptor> kept;
  if (live::Descriptor lock = live::lock_watched(live::open_folder(folder).get())) kept.push_back(std::move(lock));
}

QTreeWidget* make_tree(QWidget* parent, const QStringList& titles, const char* name) {
  auto* tree = new QTreeWidget(parent);
  tree->setObjectName(QString::fromLatin1(name));
  tree->setHeaderLabels(titles);
  tree->setRootIsDecorated(false);
  tree->setUniformRowHeights(true);
  return tree;
}

}  // namespace

std::string live_summary(const live::ProgramInfo& info, const LiveTape& tape, LiveState state) {
  const auto number = [](auto n) { return grouped(static_cast<std::int64_t>(n)); };
  const ByteUnit unit = tape.unit();
  std::string text = fmt::format("{} (process {}) {}{} · {} calls", info.name, info.process,
                                 state == LiveState::running ? "is " : "", live_state_name(state), number(tape.end()));
  if (tape.step() > 0) text += fmt::format(" · {} steps", number(tape.step()));
  if (tape.replays() > 0)
    text += fmt::format(" · {} replays of {}", number(tape.replays()), unit.readable_text(tape.replay_peak()));
  if (state == LiveState::running && tape.calls_per_second() > 0) {
    text += fmt::format(" · {} calls/s", number(tape.calls_per_second()));
    if (tape.steps_per_second() > 0) text += fmt::format(" · {:.1f} steps/s", tape.steps_per_second());
  }
  text += fmt::format(" · {} live", unit.readable_text(tape.live()));
  if (tape.peak().highest >= 0) text += fmt::format(" · peak {}", unit.readable_text(tape.peak().highest));
  return text + fmt::format(" · {} dropped", number(tape.dropped()));
}

LiveWindow::LiveWindow(Setup setup, QWidget* parent) : QMainWindow(parent), setup_(std::move(setup)) {
  setObjectName(QStringLiteral("live"));
  setWindowTitle(QStringLiteral("Running programs - Tapedeck"));
  setCentralWidget(pages_ = new QStackedWidget);
  make_list();
  connect(&timer_, &QTimer::timeout, this, guarded(this, [this] { update(); }));
  timer_.start(kTickMs);
  list_programs();
}

LiveWindow::~LiveWindow() { stop_watching(); }

void LiveWindow::make_list() {
  auto* page = new QWidget;
  auto* layout = new QVBoxLayout(page);
  programs_ = make_tree(page, {"program", "process", "started", "calls", "live bytes", "state"}, "programs");
  empty_ = plain_label(page);
  empty_->setText(
      QStringLiteral("Programs of yours that write a live view stand here: start one as  TAPEDECK_VIEW=1 ./program , or call "
                     "tapedeck::connect_viewer() in it."));
  auto* watch_button = new QPushButton(QStringLiteral("Watch"), page);
  watch_button->setObjectName(QStringLiteral("watch"));
  layout->addWidget(empty_);
  layout->addWidget(programs_);
  layout->addWidget(watch_button, 0, Qt::AlignRight);
  connect(programs_, &QTreeWidget::itemActivated, this, guarded(this, [this] { watch_chosen(); }));
  connect(watch_button, &QPushButton::clicked, this, guarded(this, [this] { watch_chosen(); }));
  pages_->addWidget(page);
}

void LiveWindow::make_view() {
  view_ = new QWidget;
  auto* layout = new QVBoxLayout(view_);
  auto* bar = new QHBoxLayout;
  auto* back = new QPushButton(QStringLiteral("Programs"), view_);
  back->setToolTip(QStringLiteral("Shows the list of running programs again."));
  capture_ = new QPushButton(QStringLiteral("Capture next step"), view_);
  capture_->setObjectName(QStringLiteral("capture"));
  capture_->setToolTip(QStringLiteral("Asks the program for its next step, as a file in the list below (Ctrl+Shift+S)."));
  follow_ = new QCheckBox(QStringLiteral("Follow"), view_);
  follow_->setToolTip(QStringLiteral("Keeps the newest calls in view, in the curve and in the table (F)."));
  auto* fit = new QPushButton(QStringLiteral("Fit all"), view_);
  fit->setToolTip(QStringLiteral("Shows all calls (H)."));
  for (QWidget* widget : std::initializer_list<QWidget*>{back, capture_, follow_, fit}) bar->addWidget(widget);
  bar->addWidget(note_ = plain_label(view_), 1);
  layout->addWidget(status_ = plain_label(view_));
  status_->setObjectName(QStringLiteral("status"));
  layout->addLayout(bar);

  picture_ = std::make_unique<LivePicture>(*source_);
  canvas_ = setup_.make_canvas(*picture_, view_);
  table_ = new QTableView(view_);
  table_->setModel(rows_ = new LiveRows(*source_, table_));
  table_->verticalHeader()->setVisible(false);
  table_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  table_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setWordWrap(false);
  table_->horizontalHeader()->setStretchLastSection(true);
  const int letter = fontMetrics().averageCharWidth();
  constexpr int kLetters[LiveRows::kColumns] = {11, 22, 18, 24, 12, 14, 11, 18};
  for (int c = 0; c < LiveRows::kColumns; ++c) table_->setColumnWidth(c, kLetters[c] * letter);
  modules_ = make_tree(view_, {"module", "calls", "bytes of results"}, "modules");
  modules_->setColumnWidth(0, 22 * letter);
  modules_->setColumnWidth(1, 10 * letter);
  captures_ = new QListWidget(view_);
  captures_->setObjectName(QStringLiteral("captures"));
  captures_->setToolTip(QStringLiteral("Captured steps. A click opens one as a document."));

  auto* beside = new QSplitter(Qt::Vertical);
  beside->addWidget(modules_);
  beside->addWidget(captures_);
  auto* below = new QSplitter(Qt::Horizontal);
  below->addWidget(table_);
  below->addWidget(beside);
  below->setSizes({700, 300});
  auto* all = new QSplitter(Qt::Vertical);
  all->addWidget(canvas_);
  all->addWidget(below);
  all->setSizes({300, 400});
  layout->addWidget(all, 1);

  connect(back, &QPushButton::clicked, this, guarded(this, [this] { list_programs(); }));
  connect(capture_, &QPushButton::clicked, this, guarded(this, [this] { capture(); }));
  connect(follow_, &QCheckBox::clicked, this, guarded(this, [this](bool on) { follow(on); }));
  connect(fit, &QPushButton::clicked, this, guarded(this, [this] {
            picture_->fit_all();
            follow(true);
          }));
  const auto key = [this](const char* keys, auto run) {
    auto* shortcut = new QShortcut(QKeySequence(QString::fromLatin1(keys)), view_);
    connect(shortcut, &QShortcut::activated, this, guarded(this, run));
  };
  key("Ctrl+Shift+S", [this] { capture(); });
  key("F", [this] { follow(!follows()); });
  key("H", [fit] { fit->click(); });
  connect(captures_, &QListWidget::itemClicked, this, guarded(this, [this] { open_chosen_capture(); }));
  picture_->on_change([this] { follow_->setChecked(picture_->follows()); });
  pages_->addWidget(view_);
}

void LiveWindow::stop_watching() {
  if (canvas_) delete std::exchange(canvas_, nullptr);  // before the picture that it draws
  delete std::exchange(view_, nullptr);
  picture_.reset();
  source_.reset();
}

void LiveWindow::list_programs() {
  stop_watching();
  setWindowTitle(QStringLiteral("Running programs - Tapedeck"));
  pages_->setCurrentIndex(0);
  update_programs();
}

void LiveWindow::watch(const std::string& folder) {
  auto source = std::make_unique<LiveSource>(folder);
  stop_watching();
  source_ = std::move(source);
  shown_changes_ = ~0ull;
  shown_captures_ = 0;
  has_steps_ = capturing_ = false;
  make_view();
  setWindowTitle(qt_text(source_->info().name) + QStringLiteral(" - Tapedeck"));
  pages_->setCurrentWidget(view_);
  follow(true);
  update();
}

void LiveWindow::watch_chosen() {
  const QTreeWidgetItem* item = programs_->currentItem();
  if (item == nullptr && programs_->topLevelItemCount() > 0) item = programs_->topLevelItem(0);
  if (item == nullptr) return;
  try {
    watch(item->data(0, Qt::UserRole).toString().toStdString());
  } catch (const FileError& e) {  // it has ended meanwhile
    show_error(this, e.what());
    update_programs();
  }
}

// ---- what has come ----

void LiveWindow::update() {
  ++ticks_;
  if (!source_) {
    if (isVisible() && ticks_ % kTicksOfList == 0) update_programs();
    return;
  }
  std::vector<LiveModule> modules;
  ByteUnit unit;
  std::vector<LiveCapture> captures;
  const bool with_modules = ticks_ % kTicksOfModules == 0 || shown_changes_ == ~0ull;
  {
    const LiveSource::View view(*source_);
    if (view.changes() == shown_changes_) return;
    if (with_modules) shown_changes_ = view.changes();
    update_status(view.tape(), view.state(), view.damage());
    if (with_modules) modules = view.tape().modules();
    unit = view.tape().unit();
    captures = view.tape().captures();
  }
  if (with_modules) update_modules(modules, unit);
  update_captures(captures);
  rows_->update();
  if (picture_->follows()) table_->scrollToBottom();
  setup_.refresh(*canvas_);
}

void LiveWindow::finish() {
  if (!source_) return update_programs();
  source_->wait_until_read();
  shown_changes_ = ~0ull;
  update();
}

void LiveWindow::update_status(const LiveTape& tape, LiveState state, const std::string& damage) {
  std::string text = live_summary(source_->info(), tape, state);
  if (!damage.empty()) text += "\nNothing more is read: " + damage;
  status_->setText(qt_text(text));
  has_steps_ = tape.has_steps();
  capture_->setEnabled(state == LiveState::running);
  if (state != LiveState::running) capturing_ = false;
  capture_->setText(has_steps_ && !capturing_ ? QStringLiteral("Capture next step")
                    : capturing_              ? QStringLiteral("End capture")
                                              : QStringLiteral("Begin capture"));
  note_->setText(has_steps_ || state != LiveState::running || tape.end() == 0
                     ? QString()
                     : QStringLiteral("The program has not called next_step() so far: a capture lasts until you end it."));
}

void LiveWindow::update_modules(const std::vector<LiveModule>& modules, const ByteUnit& unit) {
  constexpr std::size_t kMost = 500;
  const std::size_t n = std::min(modules.size(), kMost);
  while (modules_->topLevelItemCount() > static_cast<int>(n))
    delete modules_->takeTopLevelItem(modules_->topLevelItemCount() - 1);
  for (std::size_t i = 0; i < n; ++i) {
    QTreeWidgetItem* item = modules_->topLevelItem(static_cast<int>(i));
    if (item == nullptr) modules_->addTopLevelItem(item = new QTreeWidgetItem);
    item->setText(0, modules[i].name.empty() ? QStringLiteral("(outside of modules)") : qt_text(modules[i].name));
    item->setText(1, qt_text(grouped(modules[i].calls)));
    item->setText(2, qt_text(unit.readable_text(modules[i].bytes)));
    item->setTextAlignment(1, Qt::AlignRight | Qt::AlignVCenter);
    item->setTextAlignment(2, Qt::AlignRight | Qt::AlignVCenter);
  }
}

void LiveWindow::update_captures(const std::vector<LiveCapture>& captures) {
  for (; shown_captures_ < captures.size(); ++shown_captures_) {
    const LiveCapture& capture = captures[shown_captures_];
    auto* item = new QListWidgetItem(qt_text(capture.file.empty() ? capture.message : capture.file + " · " + capture.message),
                                     captures_);
    item->setData(Qt::UserRole, qt_text(capture.file));
    if (capture.file.empty()) item->setFlags(Qt::ItemIsEnabled);
    captures_->scrollToBottom();
  }
}

void LiveWindow::update_programs() {
  const QString chosen = programs_->currentItem() ? programs_->currentItem()->data(0, Qt::UserRole).toString() : QString();
  programs_->clear();
  const std::vector<live::RunningProgram> running = live::running_programs(setup_.base);
  std::int64_t most = 0;
  for (const live::RunningProgram& p : running) most = std::max(most, p.live_bytes);
  const ByteUnit unit = ByteUnit::of(most);  // so that programs can be compared
  for (const live::RunningProgram& p : running) {
    auto* item = new QTreeWidgetItem(
        programs_,
        {qt_text(p.info.name), QString::number(p.info.process),
         QDateTime::fromSecsSinceEpoch(p.info.started).toString(QStringLiteral("yyyy-MM-dd hh:mm:ss")), qt_text(grouped(p.ops)),
         qt_text(unit.readable_text(p.live_bytes)), p.alive ? QStringLiteral("running") : QStringLiteral("ended")});
    item->setData(0, Qt::UserRole, qt_text(p.folder));
    if (item->data(0, Qt::UserRole).toString() == chosen) programs_->setCurrentItem(item);
  }
  const bool any = programs_->topLevelItemCount() > 0;
  for (int c = 0; c < programs_->columnCount(); ++c) programs_->resizeColumnToContents(c);
  if (any && programs_->currentItem() == nullptr) programs_->setCurrentItem(programs_->topLevelItem(0));
}

// ---- what a person does ----

void LiveWindow::capture() {
  if (!source_) return;
  if (has_steps_ && !capturing_) return source_->ask("capture");
  source_->ask(capturing_ ? "end" : "begin");
  capturing_ = !capturing_;
  shown_changes_ = ~0ull;
  update();
}

void LiveWindow::follow(bool on) {
  if (!source_) return;
  picture_->follow(on);
  follow_->setChecked(on);
  if (on) table_->scrollToBottom();
  setup_.refresh(*canvas_);
}

void LiveWindow::open_chosen_capture() {
  const QListWidgetItem* item = captures_->currentItem();
  if (item == nullptr) return;
  const std::string file = item->data(Qt::UserRole).toString().toStdString();
  if (file.empty()) return;
  keep_until_exit(source_->folder());
  setup_.open_file(source_->folder() + "/" + file);
}

}  // namespace tapedeck::viewer
