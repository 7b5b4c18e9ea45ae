// Records of the live view: what is written is read, and bytes of any kind are read without harm.
#include <gtest/gtest.h>
#include <tapedeck/capture/live/live_records.h>

#include <random>

namespace tapedeck::live {
namespace {

OpRecord some_record() {
  OpRecord r;
  r.index = 7, r.time_ns = 8, r.live = 1000, r.bytes = 96, r.op = 3, r.path = 2, r.file = 1, r.line = 12, r.thread = 1;
  r.phase = Phase::backward;
  r.flags = OpRecord::kView;
  r.n_results = 5, r.n_types = 2;
  r.types[0].dtype = DType::f32, r.types[0].shape.rank = 2, r.types[0].shape[0] = 4, r.types[0].shape[1] = 6;
  r.types[1].dtype = DType::boolean, r.types[1].shape.rank = 0;
  return r;
}

Bytes one_of_each() {
  Bytes bytes;
  append(TextRecord{3, "matmul"}, &bytes);
  append(some_record(), &bytes);
  append(StepRecord{8, 9, 10, 11}, &bytes);
  append(DroppedRecord{4, 99}, &bytes);
  append(ReplayRecord{8, 9, 10, 11, 3, 12}, &bytes);
  append(CapturedRecord{5, "capture-1.tape", "94 nodes"}, &bytes);
  append(EndedRecord{6, "over"}, &bytes);
  append(PastRecord{0, 16, 1, 2, 3, 4}, &bytes);
  return bytes;
}

std::vector<Record> read(std::span<const unsigned char> bytes, std::string* damage = nullptr) {
  RecordReader reader;
  std::vector<Record> all;
  Record record;
  for (std::size_t taken = 0; reader.next(bytes, &record, &taken); bytes = bytes.subspan(taken)) all.push_back(record);
  if (damage) *damage = reader.damage();
  return all;
}

TEST(LiveRecords, AreReadAsTheyWereWritten) {
  const std::vector<Record> all = read(one_of_each());
  ASSERT_EQ(all.size(), 8u);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].index(), i);
  EXPECT_EQ(std::get<TextRecord>(all[0]).text, "matmul");
  const OpRecord& op = std::get<OpRecord>(all[1]);
  EXPECT_EQ(op.index, 7u);
  EXPECT_EQ(op.line, 12);
  EXPECT_EQ(op.phase, Phase::backward);
  EXPECT_EQ(op.n_types, 2);
  EXPECT_EQ(to_string(op.types[0]), "f32[4,6]");
  EXPECT_EQ(to_string(op.types[1]), "bool[]");
  EXPECT_EQ(std::get<StepRecord>(all[2]).step, 11u);
  EXPECT_EQ(std::get<DroppedRecord>(all[3]).highest_live, 99);
  EXPECT_EQ(std::get<ReplayRecord>(all[4]).peak, 11);
  EXPECT_EQ(std::get<CapturedRecord>(all[5]).file, "capture-1.tape");
  EXPECT_EQ(std::get<EndedRecord>(all[6]).reason, "over");
  EXPECT_EQ(std::get<PastRecord>(all[7]).highest, 3);
}

TEST(LiveRecords, ThatAreNotWholeYetAreLeftForLater) {
  const Bytes bytes = one_of_each();
  std::size_t before = 0;
  for (std::size_t n = 0; n <= bytes.size(); ++n) {
    std::string damage;
    const std::size_t whole = read({bytes.data(), n}, &damage).size();
    EXPECT_EQ(damage, "") << n;
    EXPECT_GE(whole, before);
    before = whole;
  }
  EXPECT_EQ(before, 8u);
}

TEST(LiveRecords, RefuseHugeLengthsAndFilesOfOtherFolders) {
  std::string damage;
  EXPECT_TRUE(read(Bytes{0xff, 0xff, 0xff, 0xff, 1}, &damage).empty());
  EXPECT_EQ(damage, "a record of 4294967295 bytes");
  EXPECT_TRUE(read(Bytes{0, 0, 0, 0}, &damage).empty());
  EXPECT_EQ(damage, "a record of 0 bytes");
  for (const char* file : {"../secret.tape", "/etc/passwd", ".hidden"}) {
    Bytes bytes;
    append(CapturedRecord{5, file, ""}, &bytes);
    EXPECT_TRUE(read(bytes, &damage).empty()) << file;
    EXPECT_NE(damage, "") << file;
  }
}

TEST(LiveRecords, CutTextsThatAreTooLong) {
  Bytes bytes;
  append(TextRecord{1, std::string(5000, 'x')}, &bytes);
  append(EndedRecord{1, std::string(100000, 'y')}, &bytes);
  const std::vector<Record> all = read(bytes);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(std::get<TextRecord>(all[0]).text, std::string(kMostTextBytes, 'x'));
  EXPECT_EQ(std::get<EndedRecord>(all[1]).reason.size(), kMostTextBytes);
}

// Whatever is read from changed bytes is allowed: its numbers are within the bounds that readers rely on.
TEST(LiveRecords, SurviveBytesThatSomebodyChanged) {
  const Bytes whole = one_of_each();
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    Bytes bytes = whole;
    for (int k = 0; k <= round % 4; ++k) bytes[random() % bytes.size()] = static_cast<unsigned char>(random());
    bytes.resize(random() % (bytes.size() + 1));
    for (const Record& record : read(bytes)) {
      if (const auto* op = std::get_if<OpRecord>(&record)) {
        ASSERT_LE(op->n_types, kMostTypes);
        ASSERT_LT(op->op, kMostTexts);
        ASSERT_GE(op->live, 0);
        for (int i = 0; i < op->n_types; ++i) ASSERT_FALSE(to_string(op->types[i]).empty());
      }
      if (const auto* text = std::get_if<TextRecord>(&record)) {
        ASSERT_LT(text->id, kMostTexts);
      }
    }
  }
}

}  // namespace
}  // namespace tapedeck::live
