// The model of a live view, and its reader: what a folder holds, whole, growing, damaged or made up.
#include <tapedeck/tests/viewer/live/live_folder.h>

#include <tapedeck/viewer/live/live_source.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

namespace tapedeck::viewer {
namespace {

LiveTape tape_of(std::uint64_t calls) {
  LiveTape tape;
  tape.add(live::TextRecord{1, "matmul"});
  tape.add(live::TextRecord{2, "relu"});
  tape.add(live::TextRecord{3, "block.0.fc1"});
  tape.add(live::TextRecord{4, "block.1.fc2"});
  for (std::uint64_t i = 0; i < calls; ++i) tape.add(LiveFolder::call(i));
  return tape;
}

TEST(LiveTape, HasCallsModulesAndThePeak) {
  LiveTape tape = tape_of(100);
  tape.add(live::StepRecord{100, 5, 7, 5});
  ASSERT_EQ(tape.ops().size(), 100u);
  EXPECT_EQ(tape.text(tape.ops()[3].op), "relu");
  EXPECT_EQ(tape.text(tape.ops()[3].types), "f32[64,40]");
  EXPECT_EQ(tape.end(), 100u);
  EXPECT_EQ(tape.peak().highest, 200 * 1024);
  EXPECT_EQ(tape.peak().index, 10u);
  EXPECT_EQ(tape.step(), 5u);
  const std::vector<LiveModule> modules = tape.modules();
  ASSERT_EQ(modules.size(), 2u);
  EXPECT_EQ(modules[0].name, "block.0");
  EXPECT_EQ(modules[0].calls, 50);
  EXPECT_EQ(modules[0].bytes, 50 * 10 * 1024);
}

TEST(LiveTape, KnowsTheExtremesOfAnyRange) {
  const LiveTape tape = tape_of(5000);
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    std::uint64_t from = random() % 5000, to = random() % 5000;
    if (from > to) std::swap(from, to);
    ++to;
    std::int64_t lowest = 1LL << 60, highest = -1;
    for (std::uint64_t i = from; i < to; ++i) {
      lowest = std::min(lowest, LiveFolder::call(i).live);
      highest = std::max(highest, LiveFolder::call(i).live);
    }
    const LivePoint found = tape.extremes(static_cast<double>(from), static_cast<double>(to));
    EXPECT_EQ(found.lowest, lowest) << from << " " << to;
    EXPECT_EQ(found.highest, highest) << from << " " << to;
  }
  EXPECT_EQ(tape.extremes(6000, 7000).highest, -1);
}

TEST(LiveTape, StaysBounded) {
  LiveTape tape;
  for (std::uint64_t i = 0; i < 3'000'000; ++i) tape.add(LiveFolder::call(i));
  EXPECT_LE(tape.ops().size(), LiveTape::kMostRows);
  EXPECT_LE(tape.points().size(), LiveTape::kMostPoints);
  EXPECT_EQ(tape.end(), 3'000'000u);
  EXPECT_EQ(tape.extremes(0, 100).highest, 200 * 1024);  // the curve is thinned, and no peak is lost
  EXPECT_EQ(tape.ops().back().index, 2'999'999u);
}

TEST(LiveTape, CountsWhatTheProgramDropped) {
  LiveTape tape = tape_of(10);
  tape.add(live::DroppedRecord{90, 999 * 1024});
  for (std::uint64_t i = 100; i < 110; ++i) tape.add(LiveFolder::call(i));
  EXPECT_EQ(tape.dropped(), 90);
  EXPECT_EQ(tape.end(), 110u);
  EXPECT_EQ(tape.peak().highest, 999 * 1024);
  EXPECT_EQ(tape.extremes(20, 30).highest, 999 * 1024);
}

TEST(LiveTape, TakesTheThinnedPastOnlyWhereItKnowsNothing) {
  LiveTape late;
  late.add(live::PastRecord{0, 500, 0, 10, 4000 * 1024, 25});
  late.add(live::PastRecord{500, 500, 0, 10, 20, 50});
  for (std::uint64_t i = 1000; i < 1010; ++i) late.add(LiveFolder::call(i));
  EXPECT_EQ(late.end(), 1010u);
  EXPECT_EQ(late.peak().highest, 4000 * 1024);
  EXPECT_EQ(late.step(), 50u);
  EXPECT_EQ(late.ops().size(), 10u);
  LiveTape early = tape_of(1000);
  early.add(live::PastRecord{0, 500, 0, 10, 4000 * 1024, 25});
  EXPECT_EQ(early.peak().highest, 200 * 1024);
  EXPECT_EQ(early.ops().size(), 1000u);
}

// ---- the reader ----

struct Reading {
  explicit Reading(const std::string& folder) : reader(folder) {}
  void read_all() {
    for (int i = 0; i < 100000 && reader.read(&tape, lock); ++i) continue;
  }
  LiveReader reader;
  LiveTape tape;
  std::mutex lock;
};

TEST(LiveReader, ReadsWhatComesChunkByChunk) {
  const Folder base;
  LiveFolder folder(base.file("live"));
  folder.add_texts();
  folder.add_calls(0, 10);
  Reading reading(folder.path());
  reading.read_all();
  EXPECT_EQ(reading.tape.end(), 10u);
  EXPECT_EQ(reading.reader.info().name, "train");
  live::Bytes half;
  live::append(LiveFolder::call(10), &half);
  const live::Bytes rest(half.begin() + 9, half.end());
  half.resize(9);
  folder.write(half);
  reading.read_all();
  EXPECT_EQ(reading.tape.end(), 10u);  // half a record is none
  folder.write(rest);
  folder.begin_chunk();
  folder.add_texts();
  folder.add(live::PastRecord{0, 11, 0, 1, 2, 0});
  folder.add_calls(11, 30);
  reading.read_all();
  EXPECT_EQ(reading.tape.end(), 30u);
  EXPECT_EQ(reading.tape.ops().size(), 30u);
  EXPECT_EQ(reading.reader.damage(), "");
  EXPECT_TRUE(reading.reader.is_alive());
  folder.die();
  EXPECT_FALSE(reading.reader.is_alive());
}

TEST(LiveReader, GoesOnBehindChunksThatWereRemoved) {
  const Folder base;
  LiveFolder folder(base.file("live"));
  folder.add_texts();
  folder.add_calls(0, 10);
  Reading reading(folder.path());
  reading.read_all();
  folder.begin_chunk();
  folder.begin_chunk();
  folder.add(live::PastRecord{0, 50, 0, 1, 777 * 1024, 0});
  folder.add(live::PastRecord{50, 50, 0, 1, 778 * 1024, 0});
  folder.add_texts();
  folder.add_calls(100, 120);
  std::filesystem::remove(folder.chunk_path(1));
  std::filesystem::remove(folder.chunk_path(2));
  reading.read_all();
  EXPECT_EQ(reading.tape.end(), 120u);
  EXPECT_EQ(reading.tape.ops().size(), 30u);
  EXPECT_EQ(reading.tape.peak().highest, 778 * 1024);
}

TEST(LiveReader, SaysThatAFolderIsDamagedAndReadsNoFurther) {
  const Folder base;
  LiveFolder folder(base.file("live"));
  folder.add_texts();
  folder.add_calls(0, 10);
  folder.write({0xff, 0xff, 0xff, 0x7f, 1, 2, 3});
  folder.add_calls(10, 20);
  Reading reading(folder.path());
  reading.read_all();
  EXPECT_EQ(reading.tape.end(), 10u);
  EXPECT_EQ(reading.reader.damage(), "chunk 1 is damaged: a record of 2147483647 bytes");
  EXPECT_FALSE(reading.reader.read(&reading.tape, reading.lock));
}

TEST(LiveReader, RefusesWhatIsNoFolderOfALiveView) {
  const Folder base;
  base.write("file", "x");
  EXPECT_THROW(LiveReader(base.file("file")), FileError);
  EXPECT_THROW(LiveReader(base.file("nothing")), FileError);
  std::filesystem::create_directory(base.file("empty"));
  EXPECT_THROW(LiveReader(base.file("empty")), FileError);
  LiveFolder folder(base.file("live"));
  std::filesystem::create_directory_symlink(folder.path(), base.file("link"));
  EXPECT_THROW(LiveReader(base.file("link")), FileError);
  std::ofstream(folder.chunk_path(1), std::ios::binary) << "TDLIVE9\n12345678";
  Reading reading(folder.path());
  reading.read_all();
  EXPECT_EQ(reading.reader.damage(), "chunk 1 is of another version");
}

TEST(LiveReader, SurvivesChunksOfAnyBytes) {
  const Folder base;
  live::Bytes whole;
  for (std::uint64_t i = 0; i < 40; ++i) live::append(LiveFolder::call(i), &whole);
  live::append(live::PastRecord{40, 10, 0, 1, 2, 3}, &whole);
  live::append(live::DroppedRecord{5, 6}, &whole);
  live::append(live::StepRecord{60, 5, 6, 7}, &whole);
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    live::Bytes bytes = whole;
    for (int k = 0; k < 1 + round % 5; ++k) bytes[random() % bytes.size()] = static_cast<unsigned char>(random());
    LiveFolder folder(base.file("live"));
    folder.write(bytes);
    Reading reading(folder.path());
    reading.read_all();
    (void)reading.tape.modules();
    (void)reading.tape.extremes(0, 1e18);
    for (const LiveOp& op : reading.tape.ops()) EXPECT_GE(site_text(reading.tape, op).size(), 0u);
    folder.die();
  }
}

TEST(LiveReader, TheLastViewerOfADeadProgramRemovesItsFolder) {
  const Folder base;
  LiveFolder folder(base.file("live"));
  {
    const LiveReader first(folder.path());
    {
      const LiveReader second(folder.path());
      folder.die();
    }
    EXPECT_TRUE(std::filesystem::exists(folder.path()));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path()));
}

TEST(LiveReader, PutsRequestsIntoTheFolder) {
  const Folder base;
  const LiveFolder folder(base.file("live"));
  const LiveReader reader(folder.path());
  reader.ask("capture");
  EXPECT_EQ(folder.request(), "capture\n");
}

TEST(LiveSource, ReadsInTheBackgroundWhileTheFolderGrows) {
  const Folder base;
  LiveFolder folder(base.file("live"));
  folder.add_texts();
  const LiveSource source(folder.path());
  for (std::uint64_t i = 0; i < 50; ++i) {
    folder.add_calls(i * 100, (i + 1) * 100);
    const LiveSource::View view(source);
    EXPECT_LE(view.tape().end(), (i + 1) * 100);
  }
  source.wait_until_read();
  {
    const LiveSource::View view(source);
    EXPECT_EQ(view.tape().end(), 5000u);
    EXPECT_EQ(view.state(), LiveState::running);
  }
  folder.die();
  source.wait_until_read();
  EXPECT_EQ(LiveSource::View(source).state(), LiveState::died);
}

}  // namespace
}  // namespace tapedeck::viewer
