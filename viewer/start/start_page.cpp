// The page is two columns: files that are there on the left, new files on the right. Making a file runs in the background.
#include <tapedeck/viewer/start/start_page.h>

#include <tapedeck/capture/record/model_registry.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/viewer/drawing/messages.h>
#include <tapedeck/viewer/drawing/theme.h>
#include <tapedeck/viewer/model/document.h>
#include <tapedeck/viewer/planning/available_memory.h>
#include <tapedeck/viewer/start/onnx_dialog.h>
#include <tapedeck/viewer/words/colours.h>

#include <QtCore/QDir>
#include <QtCore/QFileInfo>
#include <QtGui/QClipboard>
#include <QtGui/QGuiApplication>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QFormLayout>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QMessageBox>
#include <QtWidgets/QProgressBar>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QScrollArea>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QVBoxLayout>

#include <algorithm>
#include <utility>
#include <vector>

namespace tapedeck::viewer {

namespace {

constexpr const char* kSample = "unet";
constexpr double kSampleBudget = 60;

struct Size {
  const char* option;
  const char* title;
  std::int64_t ModelOptions::*value;
};
constexpr Size kSizes[] = {{"batch", "Batch", &ModelOptions::batch},
                           {"image", "Image size", &ModelOptions::image},
                           {"seq", "Sequence length", &ModelOptions::seq},
                           {"layers", "Layers", &ModelOptions::layers},
                           {"width", "Width", &ModelOptions::width}};

bool takes(const Model& model, const std::string& option) {
  return std::find(model.options.begin(), model.options.end(), option) != model.options.end();
}

QLabel* heading(const char* text) {
  auto* label = new QLabel(QString::fromLatin1("<h3>%1</h3>").arg(QString::fromLatin1(text)));
  label->setTextFormat(Qt::RichText);
  return label;
}

QPushButton* button(const char* text, const char* help) {
  auto* made = new QPushButton(QString::fromUtf8(text));
  made->setToolTip(tooltip_of(help));
  return made;
}

}  // namespace

StartPage::StartPage(Requests requests, QWidget* parent)
    : QWidget(parent),
      requests_(std::move(requests)),
      facts_([this] { QMetaObject::invokeMethod(this, guarded(this, [this] { facts_arrive(); }), Qt::QueuedConnection); }),
      task_([this] { QMetaObject::invokeMethod(this, guarded(this, [this] { arrive(); }), Qt::QueuedConnection); }) {
  setObjectName(QStringLiteral("start"));
  setAutoFillBackground(true);
  auto* columns = new QWidget;
  auto* row = new QHBoxLayout(columns);
  row->addWidget(make_recent(), 1);
  row->addWidget(make_form(), 1);
  auto* scroll = new QScrollArea;  // a low window scrolls
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setWidget(columns);
  message_ = new QLabel;
  message_->setTextFormat(Qt::PlainText);
  message_->setWordWrap(true);
  message_->setContentsMargins(12, 0, 12, 8);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(scroll);
  column->addWidget(message_);
  model_chosen();
  refresh();
  set_busy(false);
}

QWidget* StartPage::make_recent() {
  auto* side = new QWidget;
  auto* column = new QVBoxLayout(side);
  auto* title =
      new QLabel(QStringLiteral("<h2>Tapedeck</h2>What a training step holds in memory, and what it costs to hold less."));
  title->setWordWrap(true);
  column->addWidget(title);
  QPushButton* sample =
      button("Look at a sample", "Record a training step of a small U-Net and plan it at 60 % of its memory.");
  sample->setObjectName(QStringLiteral("sample"));
  QPushButton* open = button("Open a file…", "Open a .tape or .graph file. Files can be dropped here, too.");
  QPushButton* import =
      button("Import…", "Read an ONNX model, or a graph or a trace of another program, as `tapedeck import` does.");
  QPushButton* tour = button("Take the tour", "See in two minutes what the window can do, with the sample.");
  tour->setObjectName(QStringLiteral("tour"));
  QPushButton* watch =
      button("Watch a program…", "Show the tape and the memory of a running program (TAPEDECK_VIEW=1 ./program).");
  for (const auto& line : {std::vector<QPushButton*>{sample, tour}, {open, import, watch}}) {
    auto* buttons = new QHBoxLayout;
    for (QPushButton* one : line) buttons->addWidget(one);
    buttons->addStretch(1);
    column->addLayout(buttons);
  }
  column->addWidget(heading("Recent files"));
  recent_ = new QListWidget;
  recent_->setAccessibleName(QStringLiteral("recent files"));
  recent_->setMinimumHeight(120);
  column->addWidget(recent_, 1);
  connect(sample, &QPushButton::clicked, this, guarded(this, [this] { open_sample(); }));
  connect(tour, &QPushButton::clicked, this, guarded(this, [this] { requests_.tour(); }));
  connect(open, &QPushButton::clicked, this, guarded(this, [this] { requests_.ask_open(); }));
  connect(import, &QPushButton::clicked, this, guarded(this, [this] { ask_import(); }));
  connect(watch, &QPushButton::clicked, this, guarded(this, [this] { requests_.watch(); }));
  connect(recent_, &QListWidget::itemClicked, this,
          guarded(this, [this](QListWidgetItem* item) { open_item(recent_->row(item)); }));
  connect(recent_, &QListWidget::itemActivated, this,
          guarded(this, [this](QListWidgetItem* item) { open_item(recent_->row(item)); }));
  return side;
}

QWidget* StartPage::make_form() {
  auto* side = new QWidget;
  auto* form = new QFormLayout(side);
  form->addRow(heading("Record a training step"));
  models_ = new QComboBox;
  for (const Model& model : all_models()) models_->addItem(QString::fromStdString(model.name));
  form->addRow(QStringLiteral("Model"), models_);
  about_ = new QLabel;
  about_->setWordWrap(true);
  form->addRow(about_);
  for (const Size& size : kSizes) {
    auto* field = new QSpinBox;
    field->setRange(1, 1 << 20);
    sizes_[size.option] = field;
    size_labels_[size.option] = new QLabel(QString::fromLatin1(size.title));
    form->addRow(size_labels_[size.option], field);
    connect(field, &QSpinBox::valueChanged, this, guarded(this, [this] { show_line(); }));
  }
  dtype_ = new QComboBox;
  dtype_->addItems({QStringLiteral("f32"), QStringLiteral("f16"), QStringLiteral("bf16")});
  dtype_->setToolTip(QStringLiteral("The dtype of the forward pass; f16 and bf16 run it under autocast."));
  form->addRow(QStringLiteral("Dtype"), dtype_);
  optimizer_ = new QComboBox;
  optimizer_->addItems({QStringLiteral("sgd"), QStringLiteral("adamw")});
  form->addRow(QStringLiteral("Optimizer"), optimizer_);
  contents_ = new QComboBox;
  contents_->addItems({QStringLiteral("types and values"), QStringLiteral("types only")});
  contents_->setToolTip(tooltip_of(
      "A recording of types alone takes no memory, and every plan of it can be explored. A step that does not fit into "
      "the free memory is recorded so in any case."));
  form->addRow(QStringLiteral("Record"), contents_);
  file_ = new QLineEdit;
  form->addRow(QStringLiteral("File"), file_);
  line_ = new QLabel;
  line_->setTextFormat(Qt::PlainText);
  line_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  line_->setWordWrap(true);
  line_->setToolTip(QStringLiteral("The line of the tool that does the same"));
  form->addRow(line_);
  record_ = button("Record and open", "Record one training step of this model in the background, and show its plan.");
  record_->setObjectName(QStringLiteral("record"));
  QPushButton* copy = button("Copy line", "Copy the line of the tool that does the same.");
  cancel_ = button("Cancel", "Do not make this file (Esc).");
  progress_ = new QProgressBar;
  progress_->setRange(0, 0);
  progress_->setTextVisible(false);
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(record_);
  buttons->addWidget(copy);
  buttons->addWidget(progress_, 1);
  buttons->addWidget(cancel_);
  form->addRow(buttons);
  connect(models_, &QComboBox::currentIndexChanged, this, guarded(this, [this] { model_chosen(); }));
  connect(dtype_, &QComboBox::currentIndexChanged, this, guarded(this, [this] { show_line(); }));
  connect(optimizer_, &QComboBox::currentIndexChanged, this, guarded(this, [this] { show_line(); }));
  connect(contents_, &QComboBox::currentIndexChanged, this, guarded(this, [this] { show_line(); }));
  connect(file_, &QLineEdit::textChanged, this, guarded(this, [this] { show_line(); }));
  connect(record_, &QPushButton::clicked, this, guarded(this, [this] { record(); }));
  connect(copy, &QPushButton::clicked, this, guarded(this, [this] { QGuiApplication::clipboard()->setText(line_->text()); }));
  connect(cancel_, &QPushButton::clicked, this, guarded(this, [this] { cancel(); }));
  return side;
}

// The fields of the sizes that the model takes, with its own values in them.
void StartPage::model_chosen() {
  const Model* model = find_model(models_->currentText().toStdString());
  if (model == nullptr) return say("This program was built without the model zoo.", true);
  const ModelOptions defaults = with_defaults(*model, {});
  about_->setText(QString::fromStdString(model->doc));
  for (const Size& size : kSizes) {
    const bool shown = takes(*model, size.option);
    sizes_[size.option]->setVisible(shown);
    size_labels_[size.option]->setVisible(shown);
    if (shown) sizes_[size.option]->setValue(static_cast<int>(defaults.*size.value));
  }
  dtype_->setEnabled(takes(*model, "dtype"));
  dtype_->setCurrentText(QString::fromStdString(defaults.dtype));
  optimizer_->setCurrentText(QString::fromStdString(defaults.optimizer));
  if (file_->text().isEmpty() || file_->text().toStdString() == proposed_) {
    proposed_ = free_path(model->name);
    file_->setText(QString::fromStdString(proposed_));
  }
  show_line();
}

// Only what differs from the model's own values, as a person would write it.
ModelOptions StartPage::options() const {
  const Model* model = find_model(models_->currentText().toStdString());
  ModelOptions options;
  if (model == nullptr) return options;
  const ModelOptions defaults = with_defaults(*model, {});
  for (const Size& size : kSizes) {
    const std::int64_t value = sizes_.at(size.option)->value();
    if (takes(*model, size.option) && value != defaults.*size.value) options.*size.value = value;
  }
  const std::string dtype = dtype_->currentText().toStdString(), optimizer = optimizer_->currentText().toStdString();
  if (takes(*model, "dtype") && dtype != defaults.dtype) options.dtype = dtype;
  if (optimizer != defaults.optimizer) options.optimizer = optimizer;
  options.abstract = contents_->currentIndex() == 1;
  return options;
}

void StartPage::show_line() {
  line_->setText(
      QString::fromStdString(record_line(models_->currentText().toStdString(), options(), file_->text().toStdString())));
}

std::string StartPage::free_path(const std::string& name) const {
  const QDir folder(QString::fromStdString(requests_.folder()));
  const QString stem = QString::fromStdString(name);
  for (int i = 1;; ++i) {
    const QString file = i == 1 ? stem : stem + QStringLiteral("-%1").arg(i);
    const QString path = folder.filePath(file + QStringLiteral(".tape"));
    if (!QFileInfo::exists(path)) return path.toStdString();
  }
}

// ---- recent files ----

// Files that are gone stay in the list, in grey, until a click takes them out.
void StartPage::refresh() {
  recent_->clear();
  for (const QString& path : requests_.recent()) {
    const QFileInfo file(path);
    QString text = file.fileName();
    if (file.exists())
      text += QStringLiteral("  ·  %1  ·  %2")
                  .arg(QString::fromStdString(human_bytes(file.size())),
                       file.lastModified().toString(QStringLiteral("yyyy-MM-dd hh:mm")));
    else
      text += QStringLiteral("  ·  gone; a click takes it out of the list");
    text += QStringLiteral("\n") + file.absolutePath();
    auto* item = new QListWidgetItem(text, recent_);
    item->setData(Qt::UserRole, path);
    item->setToolTip(path);
    if (!file.exists()) item->setForeground(QColor(colours::kFaint.r, colours::kFaint.g, colours::kFaint.b));
  }
  if (recent_->count() > 0) return;
  auto* none = new QListWidgetItem(QStringLiteral("Files that you open are listed here."), recent_);
  none->setFlags(Qt::NoItemFlags);
}

void StartPage::open_item(int row) {
  const QString path = recent_->item(row)->data(Qt::UserRole).toString();
  if (path.isEmpty()) return;
  if (QFileInfo::exists(path)) return requests_.open(path.toStdString(), {}, false);
  requests_.forget(path.toStdString());
  refresh();
}

// ---- new files ----

void StartPage::open_sample(bool tours) {
  const Model* model = find_model(kSample);
  if (model == nullptr || busy()) return;
  ModelOptions options;
  options.batch = 8;
  options.image = 64;
  options.width = 8;
  const std::string path = free_path("sample");
  start(
      "Recording the sample", path,
      [options, path](const std::atomic<bool>& cancelled) {
        return record_step(kSample, options, path, available_memory_bytes(), cancelled);
      },
      {-1, kSampleBudget}, tours);
}

void StartPage::record() {
  if (busy()) return;
  const std::string path = file_->text().toStdString(), model = models_->currentText().toStdString();
  if (!path.ends_with(".tape")) return say("The name of the file must end with .tape.", true);
  const auto begin = [this, path, model] {
    start("Recording " + model, path,
          [model, options = options(), path](const std::atomic<bool>& cancelled) {
            return record_step(model, options, path, available_memory_bytes(), cancelled);
          },
          {});
  };
  if (!QFileInfo::exists(QString::fromStdString(path))) return begin();
  auto* question = new QMessageBox(QMessageBox::Question, QStringLiteral("Record"),
                                   QString::fromStdString(path) + QStringLiteral(" is there already. Write over it?"),
                                   QMessageBox::Yes | QMessageBox::No, this);
  question->setAttribute(Qt::WA_DeleteOnClose);
  connect(question, &QMessageBox::finished, this, guarded(this, [begin](int answer) {
            if (answer == QMessageBox::Yes) begin();
          }));
  question->open();
}

void StartPage::ask_import() {
  QString filter = QStringLiteral("onnx: a model (*.onnx);;");
  for (const ImportFormat& format : import_formats())
    filter += QString::fromLatin1("%1: %2 (%3);;")
                  .arg(QString::fromLatin1(format.name), QString::fromLatin1(format.help), QString::fromLatin1(format.endings));
  auto* dialog = new QFileDialog(this, QStringLiteral("Import"), {}, filter + QStringLiteral("All files (*)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  connect(dialog, &QFileDialog::fileSelected, this,
          guarded(this, [this](const QString& path) { import_file(path.toStdString()); }));
  dialog->open();
}

void StartPage::import_file(const std::string& path) {
  if (busy()) return;
  if (path.ends_with(".onnx")) {
    read_ = path;
    say("Reading " + base_name(path) + "…", false);
    set_busy(true);
    facts_.start([path](const std::atomic<bool>&) { return onnx_facts(path); });
    return;
  }
  const std::string to = free_path(QFileInfo(QString::fromStdString(path)).baseName().toStdString());
  start("Importing " + base_name(path), to,
        [path, to](const std::atomic<bool>& cancelled) { return import_step(format_of(path), path, to, cancelled); }, {});
}

void StartPage::facts_arrive() {
  const std::optional<OnnxFacts> facts = facts_.take();
  if (!facts) return;
  set_busy(false);
  if (!facts->error.empty()) return say(facts->error, true);
  say("", false);
  auto* dialog = new OnnxDialog(read_, *facts, this);
  connect(dialog, &QDialog::accepted, this,
          guarded(this, [this, dialog, path = read_] { import_onnx_file(path, dialog->options()); }));
  dialog->open();
}

void StartPage::import_onnx_file(const std::string& path, const OnnxOptions& options) {
  if (busy()) return;
  const std::string to = free_path(QFileInfo(QString::fromStdString(path)).baseName().toStdString());
  start("Importing " + base_name(path), to,
        [path, to, options](const std::atomic<bool>& cancelled) {
          return import_model(path, options, to, available_memory_bytes(), cancelled);
        },
        {});
}

void StartPage::start(const std::string& what, const std::string& path, std::function<NewFile(const std::atomic<bool>&)> work,
                      const Budget& budget, bool tours) {
  budget_ = budget;
  tours_ = tours;
  say(what + "…", false);
  set_busy(true);
  const QString folder = QDir(QString::fromStdString(requests_.folder())).absolutePath();
  const bool makes_folder = QFileInfo(QString::fromStdString(path)).absolutePath() == folder;
  task_.start([work = std::move(work), folder, makes_folder](const std::atomic<bool>& cancelled) {
    if (makes_folder) QDir().mkpath(folder);
    return work(cancelled);
  });
}

void StartPage::arrive() {
  std::optional<NewFile> made = task_.take();
  if (!made) return;
  set_busy(false);
  if (made->path.empty()) return say(made->error.empty() ? "Cancelled." : made->error, true);
  say(made->note, false);
  requests_.open(made->path, budget_, tours_);
  model_chosen();  // proposes a name that is free
}

bool StartPage::cancel() {
  if (!busy()) return false;
  facts_.cancel();
  task_.cancel();
  set_busy(false);
  say("Cancelled: no file was written.", false);
  return true;
}

void StartPage::wait() {
  while (busy()) QCoreApplication::processEvents(QEventLoop::AllEvents | QEventLoop::WaitForMoreEvents);
}

void StartPage::set_busy(bool busy) {
  record_->setEnabled(!busy);
  progress_->setVisible(busy);
  cancel_->setVisible(busy);
}

void StartPage::say(const std::string& text, bool is_problem) {
  message_->setText(QString::fromStdString(text));
  set_text_colour(*message_, is_problem ? colours::kProblem : colours::kText);
}

QString StartPage::message() const { return message_->text(); }

}  // namespace tapedeck::viewer
