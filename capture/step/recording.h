// One program of a captured step: the recording for one list of input types in one kind of surroundings, and its executor.
#pragma once

#include <tapedeck/capture/record/call_conditions.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/step/captured_backward.h>
#include <tapedeck/capture/step/gradient_marks.h>
#include <tapedeck/engine/eager/tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck {

struct Recording {
  std::vector<Type> types;
  Surroundings surroundings;
  std::optional<Captured> first;     // the first recording, until a second one confirms it
  std::optional<Captured> captured;  // the confirmed recording, or one made from recordings at other sizes
  std::shared_ptr<Executor> executor;
  bool made = false;                           // from recordings at other sizes
  std::shared_ptr<CapturedBackward> backward;  // if results have gradients left to give
  std::vector<const void*> bases;              // by state: the bytes that are bound
  // The monitors of the step that this executor has (step_monitors.h).
  struct Watched {
    std::weak_ptr<Executor> executor;
    std::vector<std::int32_t> ids;  // the executor's numbers for them
    std::int64_t version = 0;       // of the step's list
  } watched;
  // What a replay does to the marks of gradients, by use (gradient_marks.h).
  struct Marks {
    std::weak_ptr<Executor> executor;  // of the program that they are for
    std::vector<GradientMark> of_uses;
  } marks;
  Watchlist watchlist;
  Draws draws;
  std::vector<std::string> reasons;  // why it was recorded
  std::string refusal;               // why its calls run eagerly, with eager_fallback; empty: they do not

  const Captured* known() const { return captured ? &*captured : first ? &*first : nullptr; }
};

std::vector<Type> types_of(const std::vector<Tensor>& tensors);
std::string types_text(const std::vector<Type>& types);
bool same_types(const std::vector<Type>& types, const std::vector<Tensor>& tensors);

}  // namespace tapedeck
