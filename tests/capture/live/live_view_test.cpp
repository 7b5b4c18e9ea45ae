// A program with a live view, in a process of its own: what it writes, that its bits are the same, and that nothing that
// happens to the folder or to viewers disturbs it.
#include <gtest/gtest.h>
#include <tapedeck/tests/capture/live/live_program.h>

#include <tapedeck/tapedeck.h>

#include <sys/resource.h>
#include <sys/stat.h>

namespace tapedeck::live {
namespace {

std::ptrdiff_t count_lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

struct LiveNet : Module {
  Linear first{*this, "first", 16, 32}, second{*this, "second", 32, 4};
  Dropout drop{*this, "drop", 0.2};
  Tensor operator()(const Tensor& x) { return second(drop(relu(first(x)))); }
};

// Trains for TEST_STEPS steps (0: until the file TEST_STOP is there), and writes the bits of the losses to TEST_OUT.
TEST(LiveChild, DISABLED_Train) {
  const int steps = std::atoi(std::getenv("TEST_STEPS"));
  const std::string mode = std::getenv("TEST_MODE") ? std::getenv("TEST_MODE") : "";
  if (mode == "small files") {
    const rlimit small{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &small);
    std::signal(SIGXFSZ, SIG_IGN);
  }
  std::string bits;
  const auto train = [&](std::string* losses) {
    use_random_stream(3);
    LiveNet net;
    AdamW optimizer(net.parameters(), {.lr = 0.01});
    const auto loss_of = [&](const std::vector<Tensor>& in) {
      if (mode == "inference") {
        const NoGrad no_grad;
        return std::vector<Tensor>{mean(net.second(relu(net.first(in[0]))))};
      }
      const Tensor loss = cross_entropy(net(in[0]), in[1]);
      backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      return std::vector<Tensor>{loss};
    };
    CapturedStep captured = capture(loss_of);
    for (int i = 0; steps == 0 ? !std::filesystem::exists(std::getenv("TEST_STOP")) : i < steps; ++i) {
      const Tensor x = normal({8, 16}), y = cast(argmax(slice(x, {0, 0}, {8, 4})), DType::i32);
      const float loss = (mode == "captured" ? captured({x, y}) : loss_of({x, y}))[0].item<float>();
      losses->append(reinterpret_cast<const char*>(&loss), sizeof(loss));
      if (steps == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that little is read by the test
      if (mode == "host write") *static_cast<float*>(Tensor(x).mutable_data()) = 1;
    }
  };
  manual_seed(4);
  if (mode == "threads") {
    std::string unused;
    std::thread beside([&] { train(&unused); });
    train(&bits);
    beside.join();
  } else {
    train(&bits);
  }
  if (mode == "fork") {
    const pid_t child = ::fork();
    if (child == 0) {
      (void)(normal({4}) + 1);
      std::exit(std::filesystem::exists(std::getenv("TEST_STOP")) ? 1 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  write_all(std::getenv("TEST_OUT"), bits);
}

class LiveViewTest : public ::testing::Test {
 protected:
  std::map<std::string, std::string> settings(int steps, const std::string& mode = "") const {
    return {{"TAPEDECK_VIEW", base()},           {"TEST_STEPS", std::to_string(steps)}, {"TEST_MODE", mode},
            {"TEST_STOP", folder_.file("stop")}, {"TEST_OUT", folder_.file("out")},     {"TAPEDECK_THREADS", "1"}};
  }
  std::string base() const { return folder_.file("live"); }
  std::string bits_of(std::map<std::string, std::string> with, bool live) {
    if (!live) with["TAPEDECK_VIEW"] = "";
    std::filesystem::remove(folder_.file("out"));
    Child child("LiveChild.DISABLED_Train", with, folder_.file("err"));
    EXPECT_EQ(child.wait(), 0) << read_all(folder_.file("err"));
    return read_all(folder_.file("out"));
  }
  void stop(Child& child) {
    write_all(folder_.file("stop"), "");
    EXPECT_EQ(child.wait(), 0);
  }
  std::string warnings() const { return read_all(folder_.file("err")); }

  TemporaryFolder folder_;
};

TEST_F(LiveViewTest, ChangesNoBitAndLeavesNoFolder) {
  for (const char* mode : {"", "captured", "threads"}) {
    const std::string without = bits_of(settings(30, mode), false);
    EXPECT_EQ(without.size(), 30 * sizeof(float));
    EXPECT_EQ(bits_of(settings(30, mode), true), without) << mode;
    EXPECT_EQ(warnings(), "");
    EXPECT_TRUE(std::filesystem::exists(base()));
    EXPECT_TRUE(std::filesystem::is_empty(base())) << mode;
  }
}

TEST_F(LiveViewTest, TellsOpsStepsAndMemory) {
  Child child("LiveChild.DISABLED_Train", settings(0));
  const std::string folder = only_program(base());
  ASSERT_NE(folder, "");
  struct stat found {};
  ASSERT_EQ(::stat(folder.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700u);
  ASSERT_TRUE(wait_until([&] { return records_of<StepRecord>(folder).size() > 20; }));
  child.kill(SIGKILL);
  std::map<std::uint32_t, std::string> texts = {{0, ""}};
  for (const TextRecord& t : records_of<TextRecord>(folder)) texts[t.id] = t.text;
  const std::vector<OpRecord> ops = records_of<OpRecord>(folder);
  ASSERT_GT(ops.size(), 100u);
  std::map<std::string, int> by_name;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    EXPECT_EQ(ops[i].index, i);
    ++by_name[texts.at(ops[i].op)];
    if (texts.at(ops[i].op) == "cross_entropy") {
      EXPECT_EQ(to_string(ops[i].types[0]), "f32[]");
      EXPECT_NE(texts.at(ops[i].file).find("live_view_test.cpp"), std::string::npos);
    }
  }
  EXPECT_GE(by_name["relu"], 20);
  EXPECT_TRUE(std::any_of(ops.begin(), ops.end(), [](const OpRecord& r) { return r.phase == Phase::backward; }));
  EXPECT_TRUE(std::any_of(ops.begin(), ops.end(), [](const OpRecord& r) { return (r.flags & OpRecord::kInPlace) != 0; }));
}

TEST_F(LiveViewTest, CapturesTheNextStepOfAnEagerProgram) {
  Child child("LiveChild.DISABLED_Train", settings(0));
  const std::string folder = only_program(base());
  ask(folder, "capture\n");
  std::string file;
  ASSERT_TRUE(wait_until([&] {
    for (const CapturedRecord& r : records_of<CapturedRecord>(folder))
      if (!r.file.empty()) file = r.file;
    return !file.empty();
  }));
  const TapeFile tape = load_tape(folder + "/" + file);
  int in_backward = 0, in_update = 0;
  for (const Node& node : tape.captured.nodes) {
    in_backward += node.origin.phase == Phase::backward;
    in_update += node.origin.phase == Phase::update;
  }
  EXPECT_GT(in_backward, 0);
  EXPECT_GT(in_update, 0);
  EXPECT_TRUE(make_plan(tape.captured).feasible);
  stop(child);
}

// A capture in the middle of the run changes no bit, and neither do steps that no graph can express.
TEST_F(LiveViewTest, CapturesWithoutAnEffectOnTheProgram) {
  for (const char* mode : {"", "captured", "host write"}) {
    const std::string without = bits_of(settings(3000, mode), false);
    std::filesystem::remove(folder_.file("out"));
    Child child("LiveChild.DISABLED_Train", settings(3000, mode), folder_.file("err"));
    const std::string folder = only_program(base());
    const Descriptor directory = open_folder(folder), watched = lock_watched(directory.get());
    for (int i = 0; i < 20 && is_alive(directory.get()); ++i) {
      ask(folder, "capture\n");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_EQ(child.wait(), 0);
    EXPECT_EQ(read_all(folder_.file("out")), without) << mode;
    EXPECT_EQ(warnings(), "");
    EXPECT_FALSE(records_of<CapturedRecord>(folder).empty()) << mode;
    std::filesystem::remove_all(folder);
  }
}

TEST_F(LiveViewTest, CapturesAProgramWithoutStepsFromOneRequestToAnother) {
  Child child("LiveChild.DISABLED_Train", settings(0, "inference"));
  const std::string folder = only_program(base());
  ask(folder, "capture\n");  // which a program without steps never serves
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(records_of<CapturedRecord>(folder).empty());
  ask(folder, "begin\n");
  ASSERT_TRUE(wait_until([&] { return !records_of<CapturedRecord>(folder).empty(); }));
  ask(folder, "end\n");
  ASSERT_TRUE(wait_until([&] { return records_of<CapturedRecord>(folder).size() > 1; }));
  const CapturedRecord last = records_of<CapturedRecord>(folder).back();
  ASSERT_NE(last.file, "") << last.message;
  EXPECT_GT(load_tape(folder + "/" + last.file).captured.node_count(), 0);
  EXPECT_TRUE(records_of<StepRecord>(folder).empty());
  ask(folder, "begin\n");  // and this one is ended by its number of nodes
  ASSERT_TRUE(wait_until([&] { return std::filesystem::exists(folder + "/capture-2.tape"); }));
  stop(child);
}

TEST_F(LiveViewTest, KeepsTheFolderForAViewerThatLooks) {
  Child child("LiveChild.DISABLED_Train", settings(0));
  const std::string folder = only_program(base());
  {
    const Descriptor watched = lock_watched(open_folder(folder).get());
    ASSERT_TRUE(watched);
    stop(child);
    EXPECT_EQ(records_of<EndedRecord>(folder).size(), 1u);
    const std::vector<RunningProgram> programs = running_programs(base());
    ASSERT_EQ(programs.size(), 1u);
    EXPECT_FALSE(programs[0].alive);
  }
  EXPECT_TRUE(running_programs(base()).empty());  // nobody looks any more
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(LiveViewTest, ALookRemovesTheFoldersOfKilledPrograms) {
  Child child("LiveChild.DISABLED_Train", settings(0)), second("LiveChild.DISABLED_Train", settings(0));
  ASSERT_TRUE(wait_until([&] { return running_programs(base()).size() == 2; }));
  child.kill(SIGKILL);
  EXPECT_EQ(running_programs(base()).size(), 1u);
  EXPECT_TRUE(running_programs(base())[0].alive);
  stop(second);
  EXPECT_TRUE(std::filesystem::is_empty(base()));
}

TEST_F(LiveViewTest, EndsWithOneWarningWhenTheFolderIsRemoved) {
  Child child("LiveChild.DISABLED_Train", settings(0), folder_.file("err"));
  const std::string folder = only_program(base());
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(wait_until([&] { return !warnings().empty(); }));
  stop(child);
  EXPECT_EQ(warnings(), "warning: the live view ends: " + folder + ": the folder was removed\n");
}

TEST_F(LiveViewTest, EndsWithOneWarningWhereNothingCanBeWritten) {
  const std::string without = bits_of(settings(200), false);
  EXPECT_EQ(bits_of(settings(200, "small files"), true), without);
  EXPECT_EQ(warnings().find("warning: the live view ends: "), 0u) << warnings();
  EXPECT_EQ(count_lines(warnings()), 1);
  std::map<std::string, std::string> nowhere = settings(30);
  nowhere["TAPEDECK_VIEW"] = "/proc/nowhere";
  EXPECT_EQ(bits_of(nowhere, true).size(), 30 * sizeof(float));
  EXPECT_EQ(warnings().find("warning: no live view: /proc/nowhere"), 0u) << warnings();
  EXPECT_EQ(count_lines(warnings()), 1);
}

#ifndef __SANITIZE_THREAD__  // which allows no thread in the child of a program with threads
TEST_F(LiveViewTest, AChildOfForkHasAFolderOfItsOwn) {
  EXPECT_EQ(bits_of(settings(30, "fork"), true), bits_of(settings(30), false));
  EXPECT_EQ(warnings(), "");
  EXPECT_TRUE(std::filesystem::is_empty(base()));
}
#endif

TEST_F(LiveViewTest, RefusesFoldersThatAreNotPrivate) {
  std::filesystem::create_directory(folder_.file("real"));
  std::filesystem::create_symlink(folder_.file("real"), folder_.file("link"));
  EXPECT_NE(message_of<FileError>([&] { base_folder(folder_.file("link")); }).find("is a link"), std::string::npos);
  ::chmod(folder_.file("real").c_str(), 0777);
  EXPECT_NE(message_of<FileError>([&] { base_folder(folder_.file("real")); }).find("other users may write"), std::string::npos);
  write_all(folder_.file("file"), "");
  EXPECT_NE(message_of<FileError>([&] { base_folder(folder_.file("file")); }).find("is no folder"), std::string::npos);
  EXPECT_TRUE(running_programs(folder_.file("link")).empty());
}

// A folder that only looks like one of ours is left alone.
TEST_F(LiveViewTest, RemovesNothingThatItHasNotMade) {
  const std::string mine = base_folder(base()) + "/photos-2024-1";
  std::filesystem::create_directory(mine);
  write_all(mine + "/one.png", "x");
  EXPECT_TRUE(running_programs(base()).empty());
  EXPECT_TRUE(std::filesystem::exists(mine + "/one.png"));
}

TEST(LiveView, IsMadeAndEndedByTheProgram) {
  const TemporaryFolder folder;
  const LiveView view = connect_viewer({.folder = folder.file("live"), .name = "my net/1"});
  ASSERT_TRUE(view.connected());
  const std::string mine = view.folder();
  EXPECT_NE(mine.find("/live/my_net_1-"), std::string::npos);
  (void)(normal({4}) + 1);
  EXPECT_EQ(connect_viewer().folder(), mine);  // there is one
  const Descriptor watched = lock_watched(open_folder(mine).get());
  view.disconnect();
  EXPECT_FALSE(view.connected());
  EXPECT_EQ(view.folder(), "");
  EXPECT_GE(records_of<OpRecord>(mine).size(), 2u);
  (void)(normal({4}) + 1);
  view.disconnect();  // nothing happens
}

}  // namespace
}  // namespace tapedeck::live
