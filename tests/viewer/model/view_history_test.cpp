// Tests the history of views and the fuzzy search. Neither needs Qt.
#include <tapedeck/viewer/model/view_history.h>
#include <tapedeck/viewer/words/fuzzy.h>

#include <gtest/gtest.h>

namespace tapedeck::viewer {
namespace {

using std::chrono::milliseconds;

PlanView view_at(double low) { return {{low, low + 10}, {0, 100}}; }

TEST(ViewHistory, GoesBackAndForwardThroughJumps) {
  ViewHistory history;
  history.reset(view_at(0));
  EXPECT_FALSE(history.can_go_back());
  history.note(view_at(1), Gesture::jump);
  history.note(view_at(2), Gesture::jump);
  history.note(view_at(2), Gesture::jump);  // no change
  EXPECT_EQ(history.back(), view_at(1));
  EXPECT_EQ(history.back(), view_at(0));
  EXPECT_FALSE(history.can_go_back());
  EXPECT_EQ(history.forward(), view_at(1));
  history.note(view_at(7), Gesture::jump);  // another way
  EXPECT_FALSE(history.can_go_forward());
  EXPECT_EQ(history.back(), view_at(1));
}

TEST(ViewHistory, AGestureIsOneEntry) {
  const ViewHistory::Clock::time_point start{};
  for (Gesture gesture : {Gesture::wheel, Gesture::key, Gesture::drag}) {
    ViewHistory history;
    history.reset(view_at(0));
    for (int i = 1; i <= 5; ++i) history.note(view_at(i), gesture, start + milliseconds(100 * i));
    EXPECT_EQ(history.back(), view_at(0));
    EXPECT_EQ(history.forward(), view_at(5));
    history.note(view_at(6), gesture, start + milliseconds(600));  // after going back and forward: a new gesture
    EXPECT_EQ(history.back(), view_at(5));
  }
}

TEST(ViewHistory, APauseEndsTurnsOfTheWheelAndAReleaseEndsADrag) {
  const ViewHistory::Clock::time_point start{};
  ViewHistory history;
  history.reset(view_at(0));
  history.note(view_at(1), Gesture::wheel, start);
  history.note(view_at(2), Gesture::wheel, start + ViewHistory::kPause);
  EXPECT_EQ(history.back(), view_at(1));
  history.reset(view_at(0));
  history.note(view_at(1), Gesture::drag, start);
  history.note(view_at(2), Gesture::drag, start + milliseconds(60000));  // held still for a minute
  history.end_gesture();
  history.note(view_at(3), Gesture::drag, start + milliseconds(60001));
  EXPECT_EQ(history.back(), view_at(2));
  EXPECT_EQ(history.back(), view_at(0));
}

TEST(ViewHistory, ForgetsTheOldestViews) {
  ViewHistory history;
  history.reset(view_at(0));
  for (int i = 1; i <= 1000; ++i) history.note(view_at(i), Gesture::jump);
  std::size_t steps = 0;
  for (; history.can_go_back(); ++steps) history.back();
  EXPECT_EQ(steps, ViewHistory::kMost);
}

TEST(Fuzzy, FindsLettersInOrder) {
  EXPECT_GT(fuzzy_score("fa", "Fit all"), 0);
  EXPECT_GT(fuzzy_score("FIT ALL", "fit-all"), 0);
  EXPECT_EQ(fuzzy_score("af", "Fit all"), 0);
  EXPECT_EQ(fuzzy_score("fitx", "Fit all"), 0);
  EXPECT_EQ(fuzzy_score("x", ""), 0);
  EXPECT_GT(fuzzy_score("", "anything"), 0);
  EXPECT_GT(fuzzy_score(" ", ""), 0);
}

TEST(Fuzzy, PrefersBeginningsOfWordsAndNeighbours) {
  EXPECT_GT(fuzzy_score("fa", "Fit all"), fuzzy_score("fa", "surface"));
  EXPECT_GT(fuzzy_score("zoom", "Zoom in"), fuzzy_score("zoom", "z-o-o-m"));
  EXPECT_GT(fuzzy_score("pe", "The peak"), fuzzy_score("pe", "Compare"));
}

}  // namespace
}  // namespace tapedeck::viewer
