// The marks of values that share bytes with the selected one (model/byte_chains.h), in the memory plan: an outline around each
// of them, and a mark where one takes over the bytes of another.
#pragma once

#include <tapedeck/viewer/panels/plot.h>
#include <tapedeck/viewer/plan/byte_chains.h>

#include <cstdint>
#include <vector>

namespace tapedeck::viewer {

class ChainMarks {
 public:
  // Draws the marks for a selected value, kNone for none. The places are kept from frame to frame.
  void draw(const Plot& plot, const PlanModel& model, ValueId selected);

 private:
  struct Mark {
    PlanRect place;
    bool in_place = false;  // it takes the bytes over from the value before it
  };
  void find(const PlanModel& model, ValueId selected);

  std::uint64_t model_ = 0;  // the serial number of the model
  ValueId selected_ = kNone;
  std::vector<Mark> marks_;
};

}  // namespace tapedeck::viewer
