// Tests the pictures that the viewer writes as PNG, SVG and PDF: from the command line's options, and from the window.
#include <tapedeck/tests/viewer/pictures.h>
#include <tapedeck/tests/viewer/ui_window.h>

#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/capture/planner/plan_search.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/drawing/picture_vectors.h>
#include <tapedeck/viewer/drawing/vector_painter.h>
#include <tapedeck/viewer/export_picture.h>
#include <tapedeck/viewer/options.h>
#include <tapedeck/viewer/panels/panels.h>
#include <tapedeck/viewer/panels/plot.h>
#include <tapedeck/viewer/panels/tradeoff.h>
#include <tapedeck/viewer/screenshot.h>
#include <tapedeck/viewer/widget_vectors.h>

#include <QtCore/QXmlStreamReader>
#include <QtGui/QPainter>
#include <QtWidgets/QFileDialog>

#include <algorithm>

namespace tapedeck::viewer {
namespace {

constexpr int kExportWidth = 700, kExportHeight = 420;

struct SvgRect {
  double x0, y0, x1, y1;
  QColor colour;
  bool holds(double x, double y) const { return x >= x0 && x < x1 && y >= y0 && y < y1; }
};

// The shapes that a reader of SVG finds, which knows nothing of the viewer.
struct Svg {
  std::vector<SvgRect> rects;
  std::vector<std::string> texts;
  int images = 0;
  bool external = false;

  bool shows(const std::string& text) const {
    return std::any_of(texts.begin(), texts.end(), [&](const std::string& t) { return t.find(text) != std::string::npos; });
  }
};

Svg read_svg(const std::string& path) {
  Svg svg;
  QXmlStreamReader xml(QByteArray::fromStdString(read(path)));
  bool clip = false;
  while (!xml.atEnd()) {
    xml.readNext();
    const QXmlStreamAttributes a = xml.attributes();
    const auto number = [&](const char* name) { return a.value(QLatin1String(name)).toDouble(); };
    if (xml.name() == QLatin1String("clipPath")) clip = xml.isStartElement();
    if (!xml.isStartElement()) continue;
    svg.external |=
        a.hasAttribute(QStringLiteral("href")) && !a.value(QStringLiteral("href")).startsWith(QStringLiteral("data:"));
    if (xml.name() == QLatin1String("image")) ++svg.images;
    if (xml.name() == QLatin1String("text")) svg.texts.push_back(xml.readElementText().toStdString());
    if ((xml.name() != QLatin1String("rect") && xml.name() != QLatin1String("image")) || clip) continue;
    QColor colour(Qt::transparent);  // of an image
    if (xml.name() == QLatin1String("rect")) colour = QColor(a.value(QLatin1String("fill")).toString());
    if (a.hasAttribute(QStringLiteral("fill-opacity"))) colour.setAlphaF(static_cast<float>(number("fill-opacity")));
    svg.rects.push_back({number("x"), number("y"), number("x") + number("width"), number("y") + number("height"), colour});
  }
  EXPECT_FALSE(xml.hasError()) << path << ": " << xml.errorString().toStdString();
  return svg;
}

Options options_of(const Folder& folder, const std::string& panel, const std::string& ending) {
  Options options;
  options.file = folder.file("step.graph");
  if (!std::filesystem::exists(options.file)) folder.write("step.graph", training_graph(6));
  options.panel = panel;
  options.shot = folder.file("shot" + ending);
  options.width = kExportWidth;
  options.height = kExportHeight;
  return options;
}

std::vector<std::string> all_views() {
  std::vector<std::string> views{""};
  for (const Panel& panel : all_panels()) views.push_back(panel.name);
  return views;
}

std::string shot(const Folder& folder, const std::string& view, const std::string& ending) {
  const Options options = options_of(folder, view, ending);
  EXPECT_EQ(take_shot(options), kOk) << view << ending;
  return read(options.shot);
}

// The colours in the middle of the largest rectangles that nothing lies on equal the pixels of the PNG of the same view.
int expect_same_colours(const Svg& svg, const QImage& png, const std::string& view) {
  int compared = 0;
  for (std::size_t i = 0; i < svg.rects.size(); ++i) {
    const SvgRect& r = svg.rects[i];
    // The middle of a large rectangle may lie on a line of a grid; a large rectangle has no gradient.
    const double share = r.x1 - r.x0 > 60 && r.y1 - r.y0 > 60 ? 0.44 : 0.5;
    const double x = r.x0 + (r.x1 - r.x0) * share, y = r.y0 + (r.y1 - r.y0) * share;
    if (r.colour.alpha() != 255 || r.x1 - r.x0 < 9 || r.y1 - r.y0 < 9) continue;
    bool top = true;
    for (std::size_t j = i + 1; j < svg.rects.size(); ++j) top &= !svg.rects[j].holds(x, y);
    if (!top) continue;
    int same = 0;  // letters may lie on most pixels, and only the middle row of a gradient has the colour
    for (int dx = -4; dx <= 4; ++dx)
      for (int dy = -4; dy <= 4; ++dy)
        same += QColor(png.pixel(static_cast<int>(x) + dx, static_cast<int>(y) + dy)) == r.colour ? 1 : 0;
    EXPECT_GE(same, 9) << view << " rectangle " << i << " at " << x << ", " << y;
    ++compared;
  }
  return compared;
}

std::string shot_after(Options options, const std::string& commands) {
  std::string error;
  options.run.clear();
  EXPECT_TRUE(parse_commands(commands, &options.run, &error)) << error;
  EXPECT_EQ(take_shot(options), kOk);
  return read(options.shot);
}

// A dialog is a window of its own, so a picture of the window alone would not have it.
TEST(Export, ADialogThatACommandOpensIsInThePictureOfTheWindow) {
  Folder folder;
  const Options png = options_of(folder, "", ".png");
  const std::string before = shot(folder, "", ".png"), after = shot_after(png, "help.keys");
  const QImage without = QImage::fromData(QByteArray::fromStdString(before)),
               with = QImage::fromData(QByteArray::fromStdString(after));
  ASSERT_EQ(with.size(), QSize(kExportWidth, kExportHeight));
  EXPECT_EQ(with.pixel(3, 3), without.pixel(3, 3));
  EXPECT_GT(share_different(with, without), 0.2);
  shot_after(options_of(folder, "", ".svg"), "help.keys");
  EXPECT_TRUE(read_svg(folder.file("shot.svg")).shows("Ctrl+Home"));
}

TEST(Export, AWindowThatThePictureLacksIsTold) {
  Folder folder;
  ::testing::internal::CaptureStderr();
  shot_after(options_of(folder, "memory", ".png"), "help.keys");
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("\"Keys\", which is in a picture of the whole window"), std::string::npos) << told;
  ::testing::internal::CaptureStderr();
  shot(folder, "memory", ".png");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Export, EveryViewIsWrittenInEveryFormatAndTheSvgAgreesWithThePng) {
  Folder folder;
  for (const std::string& view : all_views()) {
    const QImage png = QImage::fromData(QByteArray::fromStdString(shot(folder, view, ".png")));
    EXPECT_EQ(png.size(), QSize(kExportWidth, kExportHeight)) << view;
    const std::string pdf = shot(folder, view, ".pdf");
    EXPECT_TRUE(pdf.starts_with("%PDF-")) << view;
    EXPECT_NE(pdf.find("%%EOF"), std::string::npos) << view;
    EXPECT_TRUE(shot(folder, view, ".svg").starts_with("<svg ")) << view;
    const Svg svg = read_svg(folder.file("shot.svg"));
    EXPECT_FALSE(svg.external) << view;
    EXPECT_GE(expect_same_colours(svg, png, view), view.empty() || view == "memory" ? 10 : 1) << view;
  }
}

TEST(Export, TheSameInputGivesTheSameBytes) {
  Folder folder;
  for (const char* view : {"", "memory"}) {
    for (const char* ending : {".svg", ".pdf"})
      EXPECT_EQ(shot(folder, view, ending), shot(folder, view, ending)) << view << ending;
    EXPECT_NE(read(folder.file("shot.pdf")).find("(D:19700101000000Z)"), std::string::npos) << view;
  }
}

// A file that holds its plan is drawn with the outline of the plan that keeps everything, as one that is planned for the
// picture.
TEST(Export, AFileWithItsPlanHasTheOutlineOfKeepingEverything) {
  Folder folder;
  TapeFile file;
  file.captured = parse(training_graph(6));
  PlanOptions how;
  how.budget_percent = 80;
  file.plan = make_plan(file.captured, how);
  ASSERT_GT(file.plan->recomputed_nodes, 0);
  for (const char* view : {"memory", "curve"}) {
    Options options = options_of(folder, view, ".svg");
    options.budget = {-1, 80};
    ASSERT_EQ(take_shot(options), kOk);
    const std::string planned_now = read(options.shot);
    const auto shapes = [](const std::string& svg) { return std::count(svg.begin(), svg.end(), '\n'); };  // one a line
    save_tape(folder.file("step.tape"), file);
    options.file = folder.file("step.tape");
    options.budget = {};
    ASSERT_EQ(take_shot(options), kOk);
    EXPECT_EQ(shapes(read(options.shot)), shapes(planned_now)) << view;
  }
}

TEST(Export, NamesOfValuesAreText) {
  Folder folder;
  for (const auto& [view, text] : {std::pair("memory", "%h2"), {"values", "%h2"}, {"parameters", "%w2"}}) {
    shot(folder, view, ".svg");
    EXPECT_TRUE(read_svg(folder.file("shot.svg")).shows(text)) << view;
  }
  shot(folder, "curve", ".svg");
  const Svg curve = read_svg(folder.file("shot.svg"));
  EXPECT_TRUE(curve.shows("most live: "));
  EXPECT_EQ(curve.images, 0);
}

// The rectangles of the memory plan, read from ImGui's triangles by a rule that knows only two triangles.
TEST_F(Window, AnSvgHasTheRectanglesOfTheDrawData) {
  ImGuiHost host;
  ImGui::GetStyle().AntiAliasedLines = ImGui::GetStyle().AntiAliasedFill = false;
  const ImDrawData* drawn = nullptr;
  for (int i = 0; i < 3; ++i) drawn = &host.frame(window.memory(), 900, 600, 1.0 / 60);
  const ImVec2 white = ImGui::GetIO().Fonts->TexUvWhitePixel;
  std::vector<std::array<double, 4>> expected;
  for (int l = 0; l < drawn->CmdListsCount; ++l) {
    const ImDrawList& list = *drawn->CmdLists[l];
    for (const ImDrawCmd& c : list.CmdBuffer)
      for (unsigned i = c.IdxOffset; i + 6 <= c.IdxOffset + c.ElemCount; i += 3) {
        const ImDrawVert* v[6];
        for (int k = 0; k < 6; ++k)
          v[k] = &list.VtxBuffer[static_cast<int>(c.VtxOffset + list.IdxBuffer[static_cast<int>(i) + k])];
        const ImVec2 a = v[0]->pos, b = v[2]->pos;
        if (v[0] != v[3] || v[2] != v[4] || v[0]->uv.x != white.x || v[0]->uv.y != white.y || v[2]->uv.x != white.x) continue;
        if (v[1]->pos.x != b.x || v[1]->pos.y != a.y || v[5]->pos.x != a.x || v[5]->pos.y != b.y) continue;
        const double x0 = std::max(a.x, c.ClipRect.x), y0 = std::max(a.y, c.ClipRect.y);
        const double x1 = std::min(b.x, c.ClipRect.z), y1 = std::min(b.y, c.ClipRect.w);
        if (x0 < x1 && y0 < y1) expected.push_back({x0, y0, x1, y1});
      }
  }
  export_picture(folder.file("memory.svg"), window.memory(), 900, 600, 1);
  const Svg svg = read_svg(folder.file("memory.svg"));
  ASSERT_EQ(svg.rects.size(), expected.size() + 1);  // the first is the ground
  ASSERT_GT(expected.size(), 50u);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const SvgRect& r = svg.rects[i + 1];
    const double found[] = {r.x0, r.y0, r.x1, r.y1};
    for (int k = 0; k < 4; ++k) EXPECT_NEAR(found[k], expected[i][static_cast<std::size_t>(k)], 0.011) << i;
  }
}

// A plan of so many nodes that the curves of all strategies are worked out only if a person asks for them, by a button.
TEST(Export, AButtonHasItsText) {
  const Folder folder;
  const std::shared_ptr<const Graph> graph = std::make_shared<const Graph>(parse(training_graph(760), "large"));
  Session session;
  TradeoffPanel panel(session);
  session.show(PlanModel::of(PlanSearch(*graph, {}, SearchEffort::draft).plan(-1)));
  ASSERT_GT(session.model()->nodes(), 3000);
  export_picture(folder.file("t.svg"), panel, 900, 600, 1);
  EXPECT_TRUE(read_svg(folder.file("t.svg")).shows("Work out the curves of all strategies"));
}

// The button is pressed by a click, and only by one.
TEST(Export, AButtonIsPressed) {
  struct Buttons : Picture {
    int pressed = 0;
    void draw(float, float) override { pressed += draw_button(20, 30, "Press") ? 1 : 0; }
  } picture;
  Canvas canvas(picture, Renderer::soft);
  canvas.resize(300, 200);
  canvas.show();
  settle(canvas);
  click(canvas, ImVec2(200, 150));
  EXPECT_EQ(picture.pressed, 0);
  click(canvas, ImVec2(30, 38));
  EXPECT_EQ(picture.pressed, 1);
}

// The same list through Qt's painter, which writes the PDF.
TEST_F(Window, ThePainterDrawsTheColoursOfThePicture) {
  const QImage wanted = render_picture(window.memory(), 800, 500);
  QImage image(800, 500, QImage::Format_RGB32);
  QPainter painter(&image);
  paint(picture_vectors(window.memory(), 800, 500), painter);
  painter.end();
  int same = 0;
  for (int y = 0; y < 500; ++y)
    for (int x = 0; x < 800; ++x) same += (wanted.pixel(x, y) & 0xffffff) == (image.pixel(x, y) & 0xffffff) ? 1 : 0;
  EXPECT_GT(same, 800 * 500 * 96 / 100);
}

TEST_F(Window, TheCommandWritesTheFormatOfTheName) {
  for (const char* name : {"a.png", "a.svg", "a.pdf"}) {
    find_command("file.export-picture")->run(window);
    auto* dialog = window.findChild<QFileDialog*>();
    ASSERT_NE(dialog, nullptr);
    Q_EMIT dialog->fileSelected(QString::fromStdString(folder.file(name)));
    delete dialog;
    ASSERT_TRUE(std::filesystem::exists(folder.file(name))) << name;
  }
  EXPECT_EQ(QImage(QString::fromStdString(folder.file("a.png"))).size(), window.size());
  EXPECT_TRUE(read(folder.file("a.pdf")).starts_with("%PDF-"));
  const Svg svg = read_svg(folder.file("a.svg"));
  EXPECT_TRUE(svg.shows("%h7"));
  EXPECT_TRUE(svg.shows("most live: "));
  EXPECT_TRUE(svg.shows("lower bound"));
}

TEST(Export, AFileThatCannotBeWrittenIsAnErrorAndLeavesNothing) {
  Folder folder;
  for (const char* ending : {".png", ".svg", ".pdf"}) {
    Options options = options_of(folder, "memory", ending);
    options.shot = folder.file("no/such/folder") + ending;
    EXPECT_EQ(take_shot(options), kBadFile) << ending;
    EXPECT_FALSE(std::filesystem::exists(options.shot));
    if (!std::filesystem::exists("/dev/full")) continue;
    options.shot = folder.file("full") + ending;  // a link to a device that is always full
    std::filesystem::create_symlink("/dev/full", options.shot);
    EXPECT_EQ(take_shot(options), kBadFile) << ending;
  }
}

TEST(Export, OtherEndingsAreUsageErrorsThatListTheThree) {
  for (const char* name : {"x.gif", "x", "x.SVG", "png"}) {
    Options options;
    std::string error;
    EXPECT_FALSE(parse_options({"a.tape", "--shot", name}, &options, &error)) << name;
    for (const char* ending : {".png", ".svg", ".pdf"}) EXPECT_NE(error.find(ending), std::string::npos) << error;
  }
}

// ---- the list of shapes ----

const Colour kRed = {255, 0, 0, 255};

TEST(VectorPicture, ShapesAreCutToTheClip) {
  VectorPicture picture(100, 100, kRed);
  picture.set_clip({10, 10, 50, 50});
  picture.add(VectorRect{{0, 0, 20, 200}, kRed});
  picture.add(VectorRect{{60, 0, 80, 20}, kRed});
  picture.add(VectorPolygon{{{{0, 10}, {100, 10}, {100, 110}}}, false, kRed});
  ASSERT_EQ(picture.shapes().size(), 2u);
  const VectorBox box = std::get<VectorRect>(picture.shapes()[0]).box;
  EXPECT_TRUE(box.x0 == 10 && box.y0 == 10 && box.x1 == 20 && box.y1 == 50);
  for (const VectorPoint& p : std::get<VectorPolygon>(picture.shapes()[1]).contours[0])
    EXPECT_TRUE(p.x >= 10 && p.x <= 50 && p.y >= 10 && p.y <= 50) << p.x << ", " << p.y;
}

TEST(VectorPicture, TextIsEscapedAndHostileBytesAreReplaced) {
  VectorPicture picture(100, 100, kRed);
  VectorText text;
  text.baseline = text.size = text.width = 20;
  text.colour = kRed;
  text.text = "<b>&\"\x01\xff\xed\xa0\x80 é×…";
  picture.add(text);
  QXmlStreamReader xml(QByteArray::fromStdString(to_svg(picture)));
  std::string found;
  while (!xml.atEnd())
    if (xml.readNext() == QXmlStreamReader::StartElement && xml.name() == QLatin1String("text"))
      found = xml.readElementText().toStdString();
  EXPECT_FALSE(xml.hasError()) << xml.errorString().toStdString();
  EXPECT_EQ(found, "<b>&\"????? é×…");
}

TEST(VectorPicture, NumbersHaveTwoDecimalsAtMost) {
  VectorPicture picture(100, 100, kRed);
  picture.add(VectorRect{{1.0f / 3, 2, 50.125f, 99.999f}, kRed});
  const std::string svg = to_svg(picture);
  EXPECT_NE(svg.find("<rect x=\"0.33\" y=\"2\" width=\"49.79\" height=\"98\""), std::string::npos) << svg;
}

}  // namespace
}  // namespace tapedeck::viewer
