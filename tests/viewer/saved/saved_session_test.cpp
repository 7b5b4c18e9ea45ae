// Tests the session of a file without any window: the text and back, hostile texts, the fit to a file that has changed, the
// places where it lies, bookmarks. Nothing here needs Qt.
#include <tapedeck/tests/viewer/folder.h>
#include <tapedeck/tests/viewer/plans.h>

#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/formats/file_calls.h>
#include <tapedeck/capture/formats/json.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/engine/text/text.h>
#include <tapedeck/viewer/planning/document_loader.h>
#include <tapedeck/viewer/saved/bookmarks.h>
#include <tapedeck/viewer/saved/fit_session.h>
#include <tapedeck/viewer/saved/session_file.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace tapedeck::viewer {
namespace {

SavedSession full_session() {
  SavedSession session;
  session.graph = "00112233445566aa";
  session.plan = "ffeeddccbbaa9988";
  session.budget = {2675189, -1};
  session.costs = CostSource::estimate;
  session.strategy = "greedy";
  session.recorded_order = true;
  session.wishes = {{WishKind::keep, "h3"}, {WishKind::recompute, "op:\"relu\\\n"}};
  session.place = {PlanView{{10.25, 22.5}, {-0.1, 1e9 / 3}}, "h5", 1, kNone};
  session.memory_region = {{{"y", 0}, {"n", 1}}, {PlanView{{0.5, 2}, {64, 128}}, "t", 2, kNone}};
  session.graph_region = {{{"b", 1}}, {{}, "", 0, 1}};
  session.range = {3, 9};
  session.bookmarks = {{"the peak, \u00e4", {PlanView{{0, 4}, {64, 128}}, "", 0, 12}}, {"all", {}}};
  session.tables = {{"nodes", "op:conv \"two words\"", "bytes", true, {{"op", 84.5, false}, {"node", 0, true}}},
                    {"values", "", "", false, {}}};
  session.open_modules = std::vector<std::string>{"stage1.0", "block/3"};
  session.layout = "AAAA/wAAAAD9+w==";
  return session;
}

TEST(SavedSession, TheTextGivesAnEqualSessionBack) {
  EXPECT_EQ(read_session(session_text(full_session())), full_session());
  EXPECT_EQ(read_session(session_text({})), SavedSession());
  EXPECT_EQ(session_text(full_session()), session_text(full_session()));
  EXPECT_EQ(read_tables(tables_text(full_session().tables)), full_session().tables);
}

TEST(SavedSession, AnyNumbersAreReadBackExactly) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> place(0, 1e12), size(1e-3, 1e12);
  for (int i = 0; i < 300; ++i) {
    SavedSession session = full_session();
    const double time = place(random), address = place(random);
    session.place.view = PlanView{{time, time + size(random)}, {address, address + size(random)}};
    session.budget = i % 2 == 0 ? Budget{static_cast<std::int64_t>(random() >> 2), -1} : Budget{-1, size(random) / 1e7};
    session.tables[0].columns[0].width = size(random) / 1e9;
    EXPECT_EQ(read_session(session_text(session)), session);
  }
}

// Replaces one line of a good session.
std::string with_member(const std::string& member) { return "{\"tapedeck_session\":1,\n" + member + "}"; }

TEST(SavedSession, AHostileTextIsAnErrorThatSaysWhere) {
  struct Case {
    std::string text, fault;
  };
  const std::string long_name(200000, 'x'), many(5000, ' ');
  std::string wishes;
  for (int i = 0; i < 5000; ++i) wishes += std::string(i == 0 ? "" : ",") + R"({"keep":"h"})";
  const std::vector<Case> cases = {
      {"", ""},
      {"null", "no session"},
      {"[]", "no session"},
      {"{}", "no session"},
      {"{\"tapedeck_session\":1", ""},
      {std::string("\x00\xff\xfe", 3), ""},
      {"{\"tapedeck_session\":\"1\"}", "no session"},
      {"{\"tapedeck_session\":2}", "its version is 2"},
      {"{\"tapedeck_session\":1,\"tapedeck_session\":1}", ""},
      {std::string(100, '[') + std::string(100, ']'), ""},
      {with_member("\"budget\":7"), "line 2, \"budget\""},
      {with_member("\"budget\":{\"bytes\":-1}"), "line 2, \"budget\""},
      {with_member("\"budget\":{\"bytes\":1e30}"), "line 2, \"budget\""},
      {with_member("\"budget\":{\"bytes\":99999999999999999999}"), ""},
      {with_member("\"budget\":{\"bytes\":9223372036854775807}"), "line 2, \"budget\""},
      {with_member("\"budget\":{\"percent\":\"nan\"}"), "nan where a number"},
      {with_member("\"budget\":{\"percent\":NaN}"), ""},
      {with_member("\"budget\":{\"percent\":1e7}"), "line 2, \"budget\""},
      {with_member("\"budget\":{\"bytes\":1,\"percent\":2}"), "not both"},
      {with_member("\"costs\":\"free\""), "\"costs\": no source"},
      {with_member("\"strategy\":[\"auto\"]"), "\"strategy\""},
      {with_member("\"recorded_order\":1"), "\"recorded_order\""},
      {with_member("\"wishes\":{\"keep\":\"h\"}"), "\"wishes\""},
      {with_member("\"wishes\":[{\"keep\":\"h\",\"recompute\":\"h\"}]"), "\"wishes\""},
      {with_member("\"wishes\":[{}]"), "\"wishes\""},
      {with_member("\"wishes\":[" + wishes + "]"), "more than 4096 items"},
      {with_member("\"wishes\":[{\"keep\":\"" + long_name + "\"}]"), "a text of 200000 bytes"},
      {with_member("\"place\":[]"), "\"place\""},
      {with_member("\"place\":{\"view\":{\"time\":[0,1]}}"), "\"address\""},
      {with_member("\"place\":{\"view\":{\"time\":[1,1],\"address\":[0,1]}}"), "the lower one first"},
      {with_member("\"place\":{\"view\":{\"time\":[\"-inf\",1],\"address\":[0,1]}}"), "-inf where a number"},
      {with_member("\"place\":{\"view\":{\"time\":[0,\"nan\"],\"address\":[0,1]}}"), "nan where a number"},
      {with_member("\"place\":{\"view\":{\"time\":[0,1,2],\"address\":[0,1]}}"), "two ends"},
      {with_member("\"place\":{\"view\":{\"time\":[0,1e300],\"address\":[0,1]}}"), "where a number from"},
      {with_member("\"place\":{\"run\":-1}"), "\"place\""},
      {with_member("\"place\":{\"run\":4294967296}"), "\"place\""},
      {with_member("\"place\":{\"node\":-5}"), "\"place\""},
      {with_member("\"range\":[5,2]"), "\"range\""},
      {with_member("\"range\":[1.5,2]"), "\"range\""},
      {with_member("\"range\":[1,3000000000]"), "\"range\""},
      {with_member("\"memory_region\":[]"), "\"memory_region\""},
      {with_member("\"memory_region\":{\"path\":[{\"value\":\"y\"}]}"), "a step into a region"},
      {with_member("\"memory_region\":{\"path\":[{\"value\":\"\",\"region\":0}]}"), "a step into a region"},
      {with_member("\"graph_region\":{\"path\":[{\"value\":\"y\",\"region\":-1}]}"), "\"graph_region\""},
      {with_member("\"graph_region\":{\"path\":[{\"value\":\"y\",\"region\":0}],\"run\":-1}"), "\"graph_region\""},
      {with_member("\"bookmarks\":[{\"view\":{}}]"), "\"bookmarks\""},
      {with_member("\"bookmarks\":[{\"name\":\"\"}]"), "\"bookmarks\""},
      {with_member("\"tables\":[{\"columns\":[{\"width\":1e9}]}]"), "\"tables\""},
      {with_member("\"tables\":[{\"columns\":[{\"width\":-1}]}]"), "\"tables\""},
      {with_member("\"tables\":[{\"filter\":null}]"), "\"tables\""},
      {with_member("\"tables\":\"nodes\""), "\"tables\""},
      {with_member("\"layout\":\"not base64!\""), "\"layout\": no base64"},
      {with_member("\"layout\":12"), "\"layout\""},
      {with_member("\"open_modules\":\"fc1\""), "\"open_modules\""},
      {with_member("\"open_modules\":[1]"), "\"open_modules\""},
      {with_member("\"open_modules\":[\"" + long_name + "\"]"), "a text of 200000 bytes"},
      {with_member("\"layout\":\"" + long_name + "\""), "a text of 200000 bytes"},
      {std::string(kMostSessionBytes + 1, ' '), "too long"},
  };
  for (const Case& bad : cases) {
    try {
      read_session(bad.text);
      ADD_FAILURE() << bad.text.substr(0, 100);
    } catch (const JsonError& error) {
      EXPECT_NE(std::string(error.what()).find(bad.fault), std::string::npos) << bad.text.substr(0, 100) << "\n"
                                                                              << error.what();
    }
  }
  EXPECT_THROW(read_tables("{}"), JsonError);
  EXPECT_THROW(read_tables(""), JsonError);
}

TEST(SavedSession, DamageIsNeverMoreThanAnError) {
  const std::string good = session_text(full_session());
  std::mt19937 random(3);
  int errors = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (int k = 0; k < 1 + i % 3; ++k) text[random() % text.size()] = static_cast<char>(random());
    if (i % 5 == 0) text.resize(random() % text.size());
    try {
      const SavedSession session = read_session(text);
      EXPECT_EQ(read_session(session_text(session)), session);
    } catch (const JsonError&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 1000);
}

TEST(SavedSession, KeysOfALaterViewerAreLeftOut) {
  EXPECT_EQ(read_session(with_member("\"budget\":{\"percent\":60,\"of\":\"peak\"},\"sound\":[1,2]")).budget, (Budget{-1, 60}));
}

// ---- the fit to the file ----

Document document_of(const std::string& text) {
  Document document;
  document.path = "step.graph";
  document.captured = std::make_shared<const Graph>(parse(text));
  return document;
}

SavedSession session_of(const Document& document) {
  SavedSession session = full_session();
  session.graph = graph_mark(*document.captured);
  session.plan = plan_mark(document.plan);
  session.wishes = {{WishKind::keep, "h3"}, {WishKind::recompute, "op:opaque"}};
  return session;
}

TEST(FitSession, OfTheSameFileNothingGoes) {
  const Document document = document_of(training_graph(6));
  SavedSession session = session_of(document);
  const SavedSession before = session;
  EXPECT_TRUE(fit_session(document, &session).empty());
  EXPECT_EQ(session, before);
  Document asking = document;
  take_options(session, &asking);
  EXPECT_EQ(asking.options.strategy, Strategy::greedy);
  EXPECT_EQ(asking.options.ordering, Ordering::recorded);
}

TEST(FitSession, OfAnotherGraphNamesStayAndNumbersGo) {
  SavedSession session = session_of(document_of(training_graph(6)));
  session.wishes = {{WishKind::keep, "h2"}, {WishKind::keep, "h6"}, {WishKind::recompute, "h*"}};
  const std::vector<std::string> notes = fit_session(document_of(training_graph(4)), &session);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(notes[0].find("graph has changed"), std::string::npos);
  EXPECT_NE(notes[1].find("--keep h6"), std::string::npos) << notes[1];
  EXPECT_EQ(session.wishes, (std::vector<Wish>{{WishKind::keep, "h2"}, {WishKind::recompute, "h*"}}));
  EXPECT_EQ(session.place, (SavedPlace{std::nullopt, "h5", 1, kNone}));
  EXPECT_TRUE(session.range.empty());
  EXPECT_TRUE(session.bookmarks.empty());  // neither had a value
  EXPECT_EQ(session.tables, full_session().tables);
  EXPECT_EQ(session.budget, full_session().budget);
}

TEST(FitSession, TheLinesOfTheProgramAreNoPartOfTheMark) {
  const std::string text = training_graph(3);
  std::string moved = text;
  for (std::size_t at = 0; (at = moved.find("path=\"layer", at)) != std::string::npos; at += 3) moved.insert(at + 6, "net.");
  ASSERT_NE(moved, text);
  EXPECT_EQ(graph_mark(parse(text)), graph_mark(parse(moved)));
  EXPECT_NE(graph_mark(parse(text)), graph_mark(parse(training_graph(4))));
}

TEST(FitSession, WishesAndStrategiesWithoutMeaningGo) {
  const Document document = document_of(training_graph(4));
  SavedSession session = session_of(document);
  session.strategy = "no such strategy";
  session.wishes = {
      {WishKind::keep, ""}, {WishKind::keep, "trait:nonsense"}, {WishKind::recompute, "region:-1"}, {WishKind::keep, "h1"}};
  EXPECT_EQ(fit_session(document, &session).size(), 2u);
  EXPECT_EQ(session.wishes, (std::vector<Wish>{{WishKind::keep, "h1"}}));
  EXPECT_EQ(session.strategy, "auto");
}

// ---- the places ----

void write_tape(const std::string& path, double percent, const std::vector<Wish>& wishes = {}) {
  TapeFile file;
  file.captured = parse(training_graph(6));
  PlanOptions options;
  options.budget_percent = percent;
  options.wishes = wishes;
  file.plan = make_plan(file.captured, options);
  save_tape(path, file);
}

TEST(SessionFile, APlanThatTheToolMadeSinceHolds) {
  const Folder folder;
  const std::string path = folder.file("step.tape");
  write_tape(path, 90);
  Document document = open_document(path);
  SavedSession session;
  session.graph = graph_mark(*document.captured);
  session.plan = plan_mark(document.plan);
  session.budget = {-1, 60};
  session.wishes = {{WishKind::keep, "h3"}};
  const SessionPlaces places = session_places(path, "", path);
  EXPECT_EQ(write_session(places, session_text(session)), path + ".session");
  LoadedFile file = load_file({path, CostSource::best, {}, false, places});
  EXPECT_EQ(file.asked, session.budget);
  EXPECT_EQ(file.model, nullptr);  // the session asks for another plan
  ASSERT_TRUE(file.session.saved);
  EXPECT_TRUE(file.session.notes.empty());
  EXPECT_EQ(load_file({path, CostSource::best, {5, -1}, false, places}).asked, (Budget{5, -1}));  // the command line says more

  write_tape(path, 80, {{WishKind::keep, "h2"}});
  file = load_file({path, CostSource::best, {}, false, places});
  ASSERT_EQ(file.session.notes.size(), 1u);
  EXPECT_NE(file.session.notes[0].find("another plan"), std::string::npos);
  ASSERT_NE(file.model, nullptr);
  EXPECT_EQ(file.asked, (Budget{file.model->plan().budget_bytes, -1}));
  EXPECT_EQ(file.session.saved->wishes, (std::vector<Wish>{{WishKind::keep, "h2"}}));
}

TEST(SessionFile, TheCostsOfTheSessionAreTakenWhereTheyExist) {
  const Folder folder;
  const std::string path = folder.file("step.tape");
  write_tape(path, 90);
  const SessionPlaces places = session_places(path, "", path);
  SavedSession session;
  session.costs = CostSource::estimate;
  write_session(places, session_text(session));
  EXPECT_EQ(load_file({path, CostSource::best, {}, false, places}).document.costs, CostSource::estimate);
  session.costs = CostSource::profile;  // the file has none
  write_session(places, session_text(session));
  const LoadedFile file = load_file({path, CostSource::best, {}, false, places});
  EXPECT_EQ(file.document.costs, CostSource::best);
  ASSERT_FALSE(file.session.notes.empty());
  EXPECT_NE(file.session.notes[0].find("costs"), std::string::npos) << file.session.notes[0];
}

struct RefusedOpen {
  explicit RefusedOpen(int times) {
    set_file_call_hook([left = times](FileCall call) mutable { return call == FileCall::open && left-- > 0 ? EACCES : 0; });
  }
  ~RefusedOpen() { set_file_call_hook({}); }
};

TEST(SessionFile, AFolderThatCannotBeWrittenHasItInAFolderOfTheUser) {
  const Folder folder;
  const std::string path = folder.write("step.graph", training_graph(3));
  const SessionPlaces places = session_places(path, folder.file("own/deep"), path);
  {
    const RefusedOpen once(1);
    EXPECT_EQ(write_session(places, session_text(full_session())), places.own);
  }
  EXPECT_FALSE(std::filesystem::exists(places.beside));
  EXPECT_EQ(find_session(places).saved, full_session());
  EXPECT_EQ(find_session(places).path, places.own);
  {
    const RefusedOpen both(2);
    EXPECT_THROW(write_session(places, session_text({})), FileError);
  }
  EXPECT_EQ(find_session(places).saved, full_session());              // as it was
  EXPECT_EQ(write_session(places, session_text({})), places.beside);  // the folder can be written again
  EXPECT_FALSE(std::filesystem::exists(places.own));
  EXPECT_EQ(find_session(places).saved, SavedSession());
  EXPECT_TRUE(remove_session(places));
  EXPECT_FALSE(remove_session(places));
  EXPECT_TRUE(find_session(places).path.empty());
}

TEST(SessionFile, FilesOfOneNameHaveSessionsOfTheirOwn) {
  const SessionPlaces a = session_places("step.tape", "/own", "/a/step.tape"),
                      b = session_places("step.tape", "/own", "/b/step.tape");
  EXPECT_EQ(a.beside, "step.tape.session");
  EXPECT_NE(a.own, b.own);
  EXPECT_EQ(a.own.substr(0, 15), "/own/step.tape-");
}

// Who makes a link of this name may mean that another file is read or written.
TEST(SessionFile, LinksAndFoldersAreNoSessions) {
  const Folder folder;
  const std::string path = folder.write("step.graph", training_graph(3)),
                    other = folder.write("other", session_text(full_session()));
  const SessionPlaces places = session_places(path, "", path);
  std::filesystem::create_symlink(other, places.beside);
  EXPECT_FALSE(find_session(places).saved);
  ASSERT_EQ(find_session(places).notes.size(), 1u);
  EXPECT_NE(find_session(places).notes[0].find("no regular file"), std::string::npos);
  EXPECT_THROW(write_session(places, "x"), FileError);
  EXPECT_THROW(remove_session(places), FileError);
  EXPECT_EQ(read(other), session_text(full_session()));
  std::filesystem::remove(places.beside);
  std::filesystem::create_symlink(folder.file("not there"), places.beside);
  EXPECT_THROW(write_session(places, "x"), FileError);
  EXPECT_FALSE(std::filesystem::exists(folder.file("not there")));
  std::filesystem::remove(places.beside);
  std::filesystem::create_directory(places.beside);
  EXPECT_FALSE(find_session(places).saved);
  EXPECT_THROW(write_session(places, "x"), FileError);
}

TEST(SessionFile, ABadSessionIsANoteAndTheFileOpens) {
  const Folder folder;
  const std::string path = folder.write("step.graph", training_graph(3));
  folder.write("step.graph.session", "{\"tapedeck_session\":99}");
  const LoadedFile file = load_file({path, CostSource::best, {}, false, session_places(path, "", path)});
  EXPECT_FALSE(file.session.saved);
  EXPECT_EQ(file.session.path, path + ".session");
  ASSERT_EQ(file.session.notes.size(), 1u);
  EXPECT_EQ(file.session.notes[0],
            "the session step.graph.session is ignored: its version is 99, and this viewer reads version 1");
}

// ---- bookmarks ----

TEST(Bookmarks, AreWalkedThroughAroundTheEnds) {
  Bookmarks bookmarks;
  EXPECT_EQ(bookmarks.step(1), nullptr);
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(bookmarks.add(name, {})->name, name);
  EXPECT_EQ(bookmarks.current()->name, "c");
  EXPECT_EQ(bookmarks.step(1)->name, "a");
  EXPECT_EQ(bookmarks.step(-1)->name, "c");
  EXPECT_EQ(bookmarks.step(-1)->name, "b");
  bookmarks.remove();
  EXPECT_EQ(bookmarks.current(), nullptr);
  bookmarks.remove();  // nothing is current
  EXPECT_EQ(bookmarks.all().size(), 2u);
  EXPECT_EQ(bookmarks.step(-1)->name, "c");
  EXPECT_EQ(Bookmarks(bookmarks.all()).step(1)->name, "a");
}

TEST(Bookmarks, NamesAreNeverTheSame) {
  Bookmarks bookmarks;
  EXPECT_EQ(bookmarks.add("%h", {})->name, "%h");
  EXPECT_EQ(bookmarks.add("%h", {})->name, "%h (2)");
  bookmarks.rename("%h");
  EXPECT_EQ(bookmarks.current()->name, "%h (2)");
  bookmarks.rename("");
  EXPECT_EQ(bookmarks.current()->name, "%h (2)");
  bookmarks.rename("the peak");
  EXPECT_EQ(bookmarks.current()->name, "the peak");
  while (bookmarks.add("x", {}) != nullptr) continue;
  EXPECT_EQ(bookmarks.all().size(), Bookmarks::kMost);
}

}  // namespace
}  // namespace tapedeck::viewer
