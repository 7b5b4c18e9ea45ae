// Tests the start page: what it makes, its form with real events, recent files, and its place in the window.
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/viewer/options.h>
#include <tapedeck/viewer/screenshot.h>
#include <tapedeck/viewer/start/new_file.h>
#include <tapedeck/viewer/start/onnx_dialog.h>
#include <tapedeck/viewer/start/start_page.h>

#include <tapedeck/capture/file/record_tape.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>
#include <QtCore/QFileInfo>
#include <QtGui/QImage>
#include <QtWidgets/QCheckBox>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QMessageBox>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QSpinBox>

#include <string>
#include <vector>

namespace tapedeck::viewer {
namespace {

const std::atomic<bool> kGoOn{false};
constexpr std::int64_t kMuch = std::int64_t{1} << 40;

ModelOptions small() { return small_options(*find_model("cnn")); }

// ---- what the page makes ----

TEST(NewFile, HoldsTheStepThatTheToolRecords) {
  const Folder folder;
  const NewFile made = record_step("cnn", small(), folder.file("c.tape"), kMuch, kGoOn);
  EXPECT_EQ(made.path, folder.file("c.tape"));
  EXPECT_EQ(made.note, "");
  const TapeFile file = load_tape(made.path), tool = record_tape("cnn", small());
  EXPECT_EQ(print(file.captured), print(tool.captured));
  EXPECT_EQ(file.metadata, tool.metadata);
  ASSERT_EQ(file.state.size(), tool.state.size());
  EXPECT_FALSE(file.state.empty());
}

TEST(NewFile, HoldsTypesAloneWhereTheMemoryDoesNotSuffice) {
  const Folder folder;
  const NewFile made = record_step("cnn", small(), folder.file("c.tape"), 1000, kGoOn);
  EXPECT_NE(made.note.find("Only types"), std::string::npos);
  const TapeFile file = load_tape(made.path);
  ModelOptions types = small();
  types.abstract = true;
  EXPECT_EQ(file.state.size(), record_tape("cnn", types).state.size());  // that of random numbers alone
  EXPECT_LT(file.state.size(), record_tape("cnn", small()).state.size());
  EXPECT_EQ(print(file.captured), print(record_tape("cnn", small()).captured));
}

TEST(NewFile, IsNotWrittenOnceCancelled) {
  const Folder folder;
  const std::atomic<bool> cancelled{true};
  EXPECT_EQ(record_step("cnn", small(), folder.file("c.tape"), kMuch, cancelled).path, "");
  EXPECT_FALSE(QFileInfo::exists(QString::fromStdString(folder.file("c.tape"))));
}

TEST(NewFile, RefusesWhatTheModelDoesNotTake) {
  const Folder folder;
  ModelOptions options = small();
  options.seq = 9;
  EXPECT_THROW(record_step("cnn", options, folder.file("c.tape"), kMuch, kGoOn), UsageError);
  EXPECT_THROW(record_step("cnnn", {}, folder.file("c.tape"), kMuch, kGoOn), UsageError);
}

constexpr const char* kGraph =
    R"({"directed": true, "nodes": [{"id": 0, "cost_ram": 64, "cost_cpu": 2}, {"id": 1, "cost_ram": 32, "cost_cpu": 3}],
        "links": [{"source": 0, "target": 1}]})";

TEST(NewFile, IsImportedFromEveryFormatByItsEnding) {
  const Folder folder;
  const std::string from = folder.write("net.json", kGraph);
  EXPECT_STREQ(format_of(from).name, "graph");
  EXPECT_STREQ(format_of("a/trace.log").name, "simrd");
  const NewFile made = import_step(format_of(from), from, folder.file("net.tape"), kGoOn);
  EXPECT_EQ(print(load_tape(made.path).captured), print(import_formats()[0].read(kGraph, from, ImportedResults::held)));
  const std::string bad = folder.write("bad.json", "{\"nodes\": 7}");
  EXPECT_THROW(import_step(format_of(bad), bad, folder.file("bad.tape"), kGoOn), Error);
  EXPECT_FALSE(QFileInfo::exists(QString::fromStdString(folder.file("bad.tape"))));
}

TEST(NewFile, HasTheLineOfTheTool) {
  ModelOptions options;
  options.batch = 3;
  options.dtype = "bf16";
  options.abstract = true;
  EXPECT_EQ(record_line("cnn", options, "a b.tape"), "tapedeck record cnn --batch 3 --dtype bf16 --abstract -o 'a b.tape'");
}

// ---- the page ----

class Start : public ::testing::Test {
 protected:
  Start() {
    page.resize(1000, 700);
    page.show();
  }
  StartPage::Requests requests() {
    return {[this](const std::string& path, const Budget& budget, bool tours) {
              opened.push_back({path, budget, tours});
            },
            [this] { ++asked; },
            [this] { return recent; },
            [this](const std::string& path) { recent.removeAll(QString::fromStdString(path)); },
            [] {},
            [this] { return folder.file("new"); },
            [this] { page.open_sample(true); }};
  }
  void click(const char* name) { click_widget(*page.findChild<QWidget*>(QString::fromLatin1(name))); }
  void choose(const std::string& model) { page.models().setCurrentText(QString::fromStdString(model)); }

  struct Opened {
    std::string path;
    Budget budget;
    bool tours;
  };
  Folder folder;
  QStringList recent;
  std::vector<Opened> opened;
  int asked = 0;
  StartPage page{requests()};
};

TEST_F(Start, RecordsTheModelOfTheFormAndOpensIt) {
  EXPECT_EQ(static_cast<std::size_t>(page.models().count()), all_models().size());
  choose("cnn");
  EXPECT_EQ(page.file().text().toStdString(), folder.file("new/cnn.tape"));
  EXPECT_EQ(page.size("batch").value(), with_defaults(*find_model("cnn"), {}).batch);
  page.size("batch").setValue(2);
  click("record");
  EXPECT_TRUE(page.busy());
  page.wait();
  ASSERT_EQ(opened.size(), 1U) << page.message().toStdString();
  EXPECT_EQ(opened[0].path, folder.file("new/cnn.tape"));
  ModelOptions options;
  options.batch = 2;
  EXPECT_EQ(print(load_tape(opened[0].path).captured), print(record_tape("cnn", options).captured));
  EXPECT_EQ(page.file().text().toStdString(), folder.file("new/cnn-2.tape"));  // the next one does not write over it
}

TEST_F(Start, ShowsTheSizesThatTheModelTakes) {
  for (const Model& model : all_models()) {
    choose(model.name);
    for (const char* option : {"batch", "image", "seq", "layers", "width"}) {
      const bool takes = std::find(model.options.begin(), model.options.end(), option) != model.options.end();
      EXPECT_EQ(page.size(option).isVisibleTo(&page), takes) << model.name << " " << option;
    }
  }
}

TEST_F(Start, AsksBeforeItWritesOverAFile) {
  choose("cnn");
  page.size("batch").setValue(1);
  const std::string path = folder.write("there.tape", "not a tape");
  page.file().setText(QString::fromStdString(path));
  click("record");
  auto* question = page.findChild<QMessageBox*>();
  ASSERT_NE(question, nullptr);
  question->button(QMessageBox::No)->click();
  EXPECT_FALSE(page.busy());
  EXPECT_EQ(read(path), "not a tape");
  QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
  click("record");
  page.findChild<QMessageBox*>()->button(QMessageBox::Yes)->click();
  page.wait();
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_GT(load_tape(path).captured.node_count(), 0);
}

TEST_F(Start, SaysWhatIsWrong) {
  page.file().setText(QStringLiteral("step.txt"));
  click("record");
  EXPECT_FALSE(page.busy());
  EXPECT_TRUE(page.message().contains(QStringLiteral(".tape")));
  page.import_file(folder.write("bad.json", "{"));
  page.wait();
  EXPECT_TRUE(opened.empty());
  EXPECT_TRUE(page.message().contains(QStringLiteral("bad.json"))) << page.message().toStdString();
}

TEST_F(Start, AFolderThatAPersonTypedIsNotMade) {
  choose("cnn");
  page.size("batch").setValue(1);
  page.file().setText(QString::fromStdString(folder.file("missing/step.tape")));
  click("record");
  page.wait();
  EXPECT_TRUE(opened.empty());
  EXPECT_TRUE(page.message().contains(QStringLiteral("missing/step.tape"))) << page.message().toStdString();
  EXPECT_FALSE(QFileInfo::exists(QString::fromStdString(folder.file("missing"))));
}

TEST_F(Start, ACancelledRecordingOpensNothing) {
  choose("cnn");
  click("record");
  EXPECT_TRUE(page.cancel());
  EXPECT_FALSE(page.cancel());
  QCoreApplication::processEvents();
  EXPECT_TRUE(opened.empty());
  EXPECT_FALSE(QFileInfo::exists(page.file().text()));
}

TEST_F(Start, TheSampleIsPlannedAtASmallerBudget) {
  click("sample");
  page.wait();
  ASSERT_EQ(opened.size(), 1U) << page.message().toStdString();
  EXPECT_EQ(opened[0].budget.percent, 60);
  EXPECT_FALSE(opened[0].tours);
  EXPECT_GT(load_tape(opened[0].path, Check::structure).captured.node_count(), 100);
}

TEST_F(Start, RecentFilesAreOpenedAndThoseThatAreGoneAreTakenOut) {
  const std::string there = folder.write("there.graph", "x");
  recent = {QString::fromStdString(there), QStringLiteral("/nowhere/gone.tape")};
  page.refresh();
  QListWidget& list = page.recent_list();
  ASSERT_EQ(list.count(), 2);
  EXPECT_TRUE(list.item(1)->text().contains(QStringLiteral("gone;")));
  const auto click_row = [&](int row) {
    list.setCurrentRow(row);
    press(list, Qt::Key_Return);
  };
  list.setFocus();
  page.activateWindow();
  ASSERT_TRUE(spin_until([&] { return page.isActiveWindow(); }));
  click_row(0);
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].path, there);
  click_row(1);
  EXPECT_EQ(opened.size(), 1U);
  EXPECT_EQ(list.count(), 1);
  EXPECT_EQ(recent.size(), 1);
}

// ---- models of other programs ----

const std::string kOnnxModels = std::string(TAPEDECK_SOURCE_DIR) + "/tests/capture/onnx/models/";

class StartOnnx : public Start {
 protected:
  void SetUp() override {
    if (!has_onnx()) GTEST_SKIP() << "this build has no support for ONNX";
  }
  OnnxDialog* read(const std::string& model) {
    page.import_file(kOnnxModels + model + "/model.onnx");
    EXPECT_TRUE(page.busy());
    page.wait();
    return dynamic_cast<OnnxDialog*>(page.findChild<QDialog*>(QStringLiteral("onnx")));
  }
};

TEST_F(StartOnnx, AsksForTheOpenSizesAndMakesAStepOfTraining) {
  OnnxDialog* dialog = read("resnet_block_dynamic");
  ASSERT_NE(dialog, nullptr) << page.message().toStdString();
  dialog->size("batch").setValue(6);
  EXPECT_NE(dialog->tool_line().find("--dims batch=6 --train --loss cross_entropy"), std::string::npos) << dialog->tool_line();
  click_widget(*dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Ok));
  page.wait();
  ASSERT_EQ(opened.size(), 1U) << page.message().toStdString();
  const TapeFile file = load_tape(opened[0].path);
  EXPECT_EQ(file.captured.values[0].type, (Type{DType::f32, {6, 3, 16, 16}}));
  EXPECT_FALSE(file.captured.updates.empty());
  EXPECT_TRUE(page.message().contains(QStringLiteral("batch normalization"))) << page.message().toStdString();
}

TEST_F(StartOnnx, ImportsAModelAsItIs) {
  OnnxDialog* dialog = read("transformer");
  ASSERT_NE(dialog, nullptr);
  dialog->trains().click();  // it is wider than its text, and a click in its middle would miss that
  EXPECT_FALSE(dialog->loss().isEnabled());
  click_widget(*dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Ok));
  page.wait();
  ASSERT_EQ(opened.size(), 1U) << page.message().toStdString();
  EXPECT_TRUE(load_tape(opened[0].path).captured.updates.empty());
}

TEST_F(StartOnnx, SaysWhatIsWrongWithAModel) {
  page.import_file(folder.write("bad.onnx", "no model"));
  page.wait();
  EXPECT_TRUE(page.message().contains(QStringLiteral("bad.onnx"))) << page.message().toStdString();
  EXPECT_EQ(page.findChild<QDialog*>(), nullptr);
  OnnxDialog* dialog = read("transformer");
  dialog->reject();
  EXPECT_FALSE(page.busy());
  EXPECT_TRUE(opened.empty());
}

// ---- the page in the window ----

TEST(StartWindow, ShowsThePageUntilAFileIsOpenAndByItsCommand) {
  const Folder folder;
  MainWindow::Setup setup{Renderer::soft, "software", false, false};
  setup.starts = true;
  MainWindow window(setup);
  window.resize(1000, 700);
  window.show();
  window.activateWindow();
  ASSERT_TRUE(spin_until([&] { return window.isActiveWindow(); }));
  EXPECT_TRUE(window.start_page_is_shown());
  EXPECT_GT(window.start_page().width(), 900);
  window.start_opening(folder.write("step.graph", training_graph(4)));
  window.wait_for_plan();
  EXPECT_FALSE(window.start_page_is_shown());
  press(window, Qt::Key_Home, Qt::ControlModifier);
  EXPECT_TRUE(window.start_page_is_shown());
  press(window, Qt::Key_Home, Qt::ControlModifier);
  EXPECT_FALSE(window.start_page_is_shown());
}

TEST(StartWindow, IsAPictureUnattended) {
  const Folder folder;
  Options options;
  std::string error;
  ASSERT_TRUE(parse_options({"--panel", "start", "--shot", folder.file("start.png")}, &options, &error)) << error;
  ASSERT_EQ(take_shot(options), kOk);
  EXPECT_EQ(QImage(QString::fromStdString(folder.file("start.png"))).size(), QSize(1600, 900));
  EXPECT_FALSE(parse_options({"a.tape", "--panel", "start", "--shot", "x.png"}, &options, &error));
}

}  // namespace
}  // namespace tapedeck::viewer
