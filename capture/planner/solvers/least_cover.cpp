// The fractional cover takes the items in the order of cost per byte, and a part of one item at the end. The search for whole
// items branches there: this item is taken, or it is not.
//
//     items (us, bytes)     (1, 100) (3, 100) (8, 100)          150 bytes: 1 + half of 3 = 2.5, at most
//     the second is taken                                        3, and half of 1 = 3.5 --> 1 + 3 = 4
//     it is not taken                                            1, and half of 8 = 5
//
// The branch with the least cost goes on. Until it takes whole items only, its cost is a bound.
#include <tapedeck/capture/planner/solvers/least_cover.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <queue>
#include <utility>

namespace tapedeck {

namespace {

double part_of(const CoverItem& item, std::int64_t bytes) {
  return item.cost * (static_cast<double>(bytes) / static_cast<double>(item.bytes));
}

class WholeCover {
 public:
  WholeCover(const std::vector<CoverItem>& items, std::int64_t bytes)
      : items_(items), bytes_(bytes), choice_(items.size(), Choice::open) {}

  double search(int most_steps) {
    add({});
    for (int step = 0; step < most_steps; ++step) {
      const auto [cost, at] = least_.top();
      const std::int32_t item = branches_[at].split;
      if (item == kWhole) return cost;
      least_.pop();
      add({static_cast<std::int32_t>(at), item, Choice::taken});
      add({static_cast<std::int32_t>(at), item, Choice::left});
    }
    return least_.top().first;
  }

 private:
  enum class Choice : std::uint8_t { open, taken, left };
  static constexpr std::int32_t kWhole = -1;

  // One choice more than the branch that it grows from.
  struct Branch {
    std::int32_t parent = -1, item = 0;
    Choice choice = Choice::open;
    std::int32_t split = kWhole;  // the item of which a part is taken
  };

  void add(Branch branch) {
    for (const Branch* b = &branch; b->choice != Choice::open; b = &branches_[static_cast<std::size_t>(b->parent)])
      choice_[static_cast<std::size_t>(b->item)] = b->choice;
    const double cost = cover(&branch.split);
    for (const Branch* b = &branch; b->choice != Choice::open; b = &branches_[static_cast<std::size_t>(b->parent)])
      choice_[static_cast<std::size_t>(b->item)] = Choice::open;
    least_.push({cost, branches_.size()});
    branches_.push_back(branch);
  }

  // The fractional cover under the choices made.
  double cover(std::int32_t* split) const {
    double cost = 0;
    std::int64_t missing = bytes_;
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (choice_[i] == Choice::taken) cost += items_[i].cost, missing -= items_[i].bytes;
    for (std::size_t i = 0; i < items_.size() && missing > 0; ++i) {
      if (choice_[i] != Choice::open) continue;
      if (missing < items_[i].bytes) {
        *split = static_cast<std::int32_t>(i);
        return cost + part_of(items_[i], missing);
      }
      cost += items_[i].cost, missing -= items_[i].bytes;
    }
    return missing > 0 ? std::numeric_limits<double>::infinity() : cost;
  }

  const std::vector<CoverItem>& items_;
  const std::int64_t bytes_;
  std::vector<Choice> choice_;  // by item
  std::vector<Branch> branches_;
  std::priority_queue<std::pair<double, std::size_t>, std::vector<std::pair<double, std::size_t>>, std::greater<>> least_;
};

}  // namespace

Cover fractional_cover(std::vector<CoverItem>* items, std::int64_t bytes) {
  const auto cheaper = [](const CoverItem& a, const CoverItem& b) {
    const double left = a.cost * static_cast<double>(b.bytes), right = b.cost * static_cast<double>(a.bytes);
    return left != right ? left < right : a.bytes > b.bytes;
  };
  std::sort(items->begin(), items->end(), cheaper);
  Cover cover;
  for (const CoverItem& item : *items) {
    cover.per_byte = item.cost / static_cast<double>(item.bytes);
    if (bytes <= item.bytes) return {cover.cost + part_of(item, bytes), cover.per_byte};
    cover.cost += item.cost;
    bytes -= item.bytes;
  }
  return cover;
}

double whole_cover(const std::vector<CoverItem>& items, std::int64_t bytes, int most_steps) {
  return WholeCover(items, bytes).search(most_steps);
}

}  // namespace tapedeck
