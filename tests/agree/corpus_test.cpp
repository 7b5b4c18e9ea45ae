// Runs every hand-written program in every way of harness.h and expects the same bits. The oracle is the eager run of the
// program.
#include <tapedeck/tests/agree/corpus.h>
#include <tapedeck/tests/agree/harness.h>

#include <gtest/gtest.h>

#include <set>

namespace tapedeck::agree {
namespace {

class Corpus : public ::testing::TestWithParam<Entry> {};

TEST_P(Corpus, AgreesInEveryWay) {
  const Verdict verdict = check_agreement(GetParam().build);
  EXPECT_TRUE(verdict.agrees()) << verdict.text();
  EXPECT_GE(verdict.ways, 18);
}

INSTANTIATE_TEST_SUITE_P(Programs, Corpus, ::testing::ValuesIn(corpus()), [](const auto& info) { return info.param.name; });

TEST(CorpusSize, IsWhatTheIssueAsksFor) {
  std::set<std::string> names;
  for (const Entry& e : corpus()) names.insert(e.name);
  EXPECT_EQ(names.size(), corpus().size());
  EXPECT_GE(corpus().size(), 60u);
}

}  // namespace
}  // namespace tapedeck::agree
