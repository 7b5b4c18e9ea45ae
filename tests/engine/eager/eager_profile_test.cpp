// Tests the profile of eager code: which kernels it notes, with their place, and its table and trace.
#include <tapedeck/engine/eager/eager_profile.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/messages.h>

#include <algorithm>
#include <memory>

namespace tapedeck {
namespace {

std::int64_t count(const EagerProfile& profile, const std::string& op) {
  return std::count_if(profile.events().begin(), profile.events().end(), [&](const EagerEvent& e) { return op == e.op; });
}

TEST(EagerProfile, NotesTheKernelsOfItsLifeInOrder) {
  const Tensor x = ones({10, 20});
  exp(x);
  EagerProfile profile;
  const int line = __LINE__ + 1;
  const Tensor y = tanh(x);
  const Tensor view = reshape(y, {200});  // computes nothing
  const Tensor z = y + view.numel();
  profile.stop();
  exp(x);
  ASSERT_EQ(profile.events().size(), 2u);
  const EagerEvent &first = profile.events()[0], &second = profile.events()[1];
  EXPECT_STREQ(first.op, "tanh");
  EXPECT_EQ(first.site.line, line);
  EXPECT_EQ(first.bytes, 2 * 800);
  EXPECT_STREQ(second.op, "add");
  EXPECT_GE(first.begin_ns, 0);
  EXPECT_GE(first.end_ns, first.begin_ns);
  EXPECT_GE(second.begin_ns, first.end_ns);
}

TEST(EagerProfile, KnowsModulesAndPhases) {
  struct Net : Module {
    Linear fc{*this, "fc", 3, 2};
  } net;
  EagerProfile profile;
  backward(sum(net.fc(ones({4, 3}))));
  const auto named = [&](Phase phase) {
    return std::any_of(profile.events().begin(), profile.events().end(),
                       [&](const EagerEvent& e) { return e.phase == phase && e.path.view() == "fc"; });
  };
  EXPECT_TRUE(named(Phase::forward));
  EXPECT_TRUE(std::any_of(profile.events().begin(), profile.events().end(),
                          [](const EagerEvent& e) { return e.phase == Phase::backward; }));
}

TEST(EagerProfile, AnInnerOneTakesThePlaceOfTheOuterOne) {
  const Tensor x = ones({4});
  EagerProfile outer;
  exp(x);
  {
    EagerProfile inner;
    tanh(x);
    EXPECT_EQ(count(inner, "tanh"), 1);
  }
  exp(x);
  EXPECT_EQ(count(outer, "exp"), 2);
  EXPECT_EQ(count(outer, "tanh"), 0);
}

TEST(EagerProfile, AnOuterOneMayEndFirst) {
  const Tensor x = ones({4});
  auto outer = std::make_unique<EagerProfile>(), middle = std::make_unique<EagerProfile>();
  {
    EagerProfile inner;
    middle->stop();
    outer.reset();
    exp(x);
    EXPECT_EQ(count(inner, "exp"), 1);
  }
  tanh(x);
  EXPECT_TRUE(middle->events().empty());
  EXPECT_FALSE(eager_profile_is_on());
}

TEST(EagerProfile, HasATableAndATrace) {
  const Tensor x = ones({100, 100});
  EagerProfile profile;
  for (int i = 0; i < 3; ++i) matmul(x, x);
  exp(x);
  profile.stop();
  const std::string table = profile.table(), trace = profile.chrome_trace();
  EXPECT_MENTIONS(table, "matmul                              3 ");
  EXPECT_MENTIONS(table, "all kernels                         4 ");
  EXPECT_MENTIONS(table, "outside of kernels");
  std::int64_t matmul_ns = 0, exp_ns = 0;
  for (const EagerEvent& e : profile.events()) (std::string(e.op) == "exp" ? exp_ns : matmul_ns) += e.end_ns - e.begin_ns;
  if (matmul_ns != exp_ns) {  // the slowest first
    EXPECT_EQ(table.find("matmul") < table.find("exp"), matmul_ns > exp_ns) << table;
  }
  EXPECT_MENTIONS(trace, "{\"name\": \"matmul\", \"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": ");
  EXPECT_MENTIONS(trace, "eager_profile_test.cpp:");
  EXPECT_EQ(std::count(trace.begin(), trace.end(), '{'), std::count(trace.begin(), trace.end(), '}'));
}

TEST(EagerProfile, ATraceKeepsNamesInUtf8AndReplacesOtherBytes) {
  EagerProfile profile;
  {
    const PathScope scope("größe \xff\x01\"");
    exp(ones({2}));
  }
  profile.stop();
  EXPECT_MENTIONS(profile.chrome_trace(), "\"module\": \"größe \\ufffd\\u0001\\\"\"");
}

}  // namespace
}  // namespace tapedeck
