// Part of an order: which items have run, what is alive now, and what each item that could run next would do to it.
#pragma once

#include <tapedeck/capture/planner/order/order_problem.h>

#include <cstdint>
#include <vector>

namespace tapedeck {

// An item that could run next. Live bytes would be `extra` more while it runs, and `net` more after it.
struct ReadyItem {
  std::int32_t item = kNone;
  std::int64_t extra = 0, net = 0;
};

struct DownSet {
  std::vector<std::uint64_t> done;  // a bit by item
  std::vector<ReadyItem> ready;
  std::int64_t live = 0, peak = 0;
  std::uint64_t hash = 0;  // of `done`
  std::int32_t n_done = 0;
  std::int32_t last = kNone;  // for the search: where the items that have run are written down

  bool has_run(std::int32_t item) const { return done[static_cast<std::size_t>(item) / 64] >> (item % 64) & 1; }
};

// Runs items. Cost of one: the readers of what it reads and the items that wait for it.
class OrderStepper {
 public:
  explicit OrderStepper(const OrderProblem& problem) : p_(problem) {}

  DownSet start();
  void run(DownSet* set, std::size_t ready);  // set->ready[ready]

  // Look-ups so far: a clock that is the same on every machine.
  std::int64_t work() const { return work_; }
  void add_work(std::int64_t work) { work_ += work; }

 private:
  bool can_run(const DownSet& set, std::int32_t item);
  bool is_open(const DownSet& set, std::int32_t whole);
  bool dies_with(const DownSet& set, std::int32_t value, std::int32_t item);
  ReadyItem look(const DownSet& set, std::int32_t item);
  std::int32_t only_reader_left(const DownSet& set, std::int32_t value);

  const OrderProblem& p_;
  std::int64_t work_ = 0;
};

}  // namespace tapedeck
