// Folds many sequences of numbers, each to one result. A Task says where the numbers are and what becomes of a total:
//
//     using A                      the accumulator, plain data
//     A identity()                 changes no other accumulator
//     A combine(A a, A b)          where a comes before b
//     auto place(result)           for at(); looks at no element unless the sequence has one
//     A at(place, i)               element i of the sequence
//     void finish(result, A)       writes the result
//
// A sequence is cut into pieces, by the number of results and the length alone. A piece is dealt to 32 lanes of 4 accumulators:
// element i goes to lane i % 32, accumulator i / 32 % 4. The accumulators of a lane are folded in pairs, then lane l with lane
// l + 16, l + 8, ..., and then the pieces. Two kernels do this, and they give the same bits:
//
//     along    a warp folds a piece; its lanes read neighbouring elements
//     across   a block folds the same piece of 32 sequences; its lanes read neighbouring sequences. Of the 8 threads of a
//     sequence
//              each has 4 lanes.
#pragma once

#include <tapedeck/kernels/cuda/reduce.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace folds {

inline constexpr int kAccumulators = 4;
inline constexpr std::int64_t kSlots = kAccumulators * kWarp;
inline constexpr int kTall = kThreads / kWarp;  // threads of one sequence, where a block folds across

// Sequences are cut where their number alone would not fill the device, but no piece is shorter than kShortPiece.
struct Pieces {
  static constexpr std::int64_t kEnoughWarps = 4096, kShortPiece = 1024, kMost = 1024;
  std::int64_t results = 0, length = 0, piece = 0, pieces = 1;

  Pieces(std::int64_t n_results, std::int64_t n) : results(n_results), length(n), piece(n) {
    if (results == 0 || length <= kShortPiece || results >= kEnoughWarps) return;
    std::int64_t wanted = length / kShortPiece;
    if (wanted > kEnoughWarps / results) wanted = kEnoughWarps / results;
    if (wanted > kMost) wanted = kMost;
    if (wanted < 2) return;
    piece = ((length - 1) / wanted / kSlots + 1) * kSlots;
    pieces = (length - 1) / piece + 1;
  }
  // The bytes of workspace for the totals of the pieces.
  std::int64_t bytes(std::size_t accumulator) const {
    return pieces == 1 ? 0 : results * pieces * static_cast<std::int64_t>(accumulator);
  }
};

template <class Task>
struct FoldArgs {
  Task task;
  Pieces cut;
  typename Task::A* partial;  // [results, pieces]

  TAPEDECK_DEVICE void deliver(std::int64_t result, std::int64_t piece, const typename Task::A& total) const {
    if (cut.pieces == 1)
      task.finish(result, total);
    else
      partial[result * cut.pieces + piece] = total;
  }
  TAPEDECK_DEVICE std::int64_t end_of(std::int64_t piece) const {
    const std::int64_t end = (piece + 1) * cut.piece;
    return end < cut.length ? end : cut.length;
  }
};

template <class Task>
struct Combines {
  const Task& task;
  TAPEDECK_DEVICE auto operator()(const typename Task::A& a, const typename Task::A& b) const { return task.combine(a, b); }
};

template <class Task>
TAPEDECK_KERNEL void fold_along(const FoldArgs<Task> f) {
  using A = typename Task::A;
  const std::int64_t items = f.cut.results * f.cut.pieces, step = static_cast<std::int64_t>(gridDim.x) * kTall;
  for (std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * kTall + warp_of_block(); item < items; item += step) {
    const std::int64_t result = item / f.cut.pieces, piece = item % f.cut.pieces, end = f.end_of(piece);
    const auto place = f.task.place(result);
    A acc[kAccumulators];
    for (A& a : acc) a = f.task.identity();
    for (std::int64_t at = piece * f.cut.piece + lane_of_warp(); at < end; at += kSlots) {
      TAPEDECK_UNROLLED
      for (int k = 0; k < kAccumulators; ++k)
        if (at + k * kWarp < end) acc[k] = f.task.combine(acc[k], f.task.at(place, at + k * kWarp));
    }
    const A lane = f.task.combine(f.task.combine(acc[0], acc[1]), f.task.combine(acc[2], acc[3]));
    const A total = warp_fold(lane, Combines<Task>{f.task});
    if (lane_of_warp() == 0) f.deliver(result, piece, total);
  }
}

// The fold of one thread of a sequence, over the slots `first`, first + 8, ... of the piece.
template <class Task, class Place>
TAPEDECK_DEVICE typename Task::A fold_slots(const Task& task, const Place& place, std::int64_t first, std::int64_t end) {
  using A = typename Task::A;
  constexpr int kOwn = static_cast<int>(kSlots) / kTall, kLanes = kOwn / kAccumulators;
  static_assert(kLanes == 4);
  A acc[kOwn];
  TAPEDECK_UNROLLED
  for (int m = 0; m < kOwn; ++m) acc[m] = task.identity();
  for (std::int64_t at = first; at < end; at += kSlots) {
    TAPEDECK_UNROLLED
    for (int m = 0; m < kOwn; ++m)
      if (at + m * kTall < end) acc[m] = task.combine(acc[m], task.at(place, at + m * kTall));
  }
  TAPEDECK_UNROLLED
  for (int l = 0; l < kLanes; ++l)
    acc[l] = task.combine(task.combine(acc[l], acc[l + kLanes]), task.combine(acc[l + 2 * kLanes], acc[l + 3 * kLanes]));
  return task.combine(task.combine(acc[0], acc[2]), task.combine(acc[1], acc[3]));
}

template <class Task>
TAPEDECK_KERNEL void fold_across(const FoldArgs<Task> f) {
  using A = typename Task::A;
  TAPEDECK_SHARED A shared[kTall][kWarp];
  const unsigned x = lane_of_warp(), y = warp_of_block();
  const std::int64_t tiles = (f.cut.results - 1) / kWarp + 1;
  for (std::int64_t job = blockIdx.x; job < tiles * f.cut.pieces; job += gridDim.x) {
    const std::int64_t result = job % tiles * kWarp + x, piece = job / tiles;
    A total = f.task.identity();
    if (result < f.cut.results) total = fold_slots(f.task, f.task.place(result), piece * f.cut.piece + y, f.end_of(piece));
    sync_block();  // the previous job may still be read
    shared[y][x] = total;
    for (unsigned step = kTall / 2; step > 0; step /= 2) {
      sync_block();
      if (y < step) shared[y][x] = f.task.combine(shared[y][x], shared[y + step][x]);
    }
    if (y == 0 && result < f.cut.results) f.deliver(result, piece, shared[0][x]);
  }
}

// The second stage: a warp folds the totals of the pieces of one sequence.
template <class Task>
TAPEDECK_KERNEL void fold_pieces(const FoldArgs<Task> f) {
  using A = typename Task::A;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kTall;
  for (std::int64_t result = static_cast<std::int64_t>(blockIdx.x) * kTall + warp_of_block(); result < f.cut.results;
       result += step) {
    A lane = f.task.identity();
    for (std::int64_t p = lane_of_warp(); p < f.cut.pieces; p += kWarp)
      lane = f.task.combine(lane, f.partial[result * f.cut.pieces + p]);
    const A total = warp_fold(lane, Combines<Task>{f.task});
    if (lane_of_warp() == 0) f.task.finish(result, total);
  }
}

// Folds all sequences of the task. `partial` has cut.bytes(sizeof(Task::A)) bytes, aligned for A.
template <class Task>
void fold(const KernelCall& call, const Task& task, const Pieces& cut, bool across, void* partial) {
  if (cut.results == 0) return;
  const FoldArgs<Task> args{task, cut, static_cast<typename Task::A*>(partial)};
  if (across)
    launch(call, &fold_across<Task>, blocks_for(((cut.results - 1) / kWarp + 1) * cut.pieces, 1), args);
  else
    launch(call, &fold_along<Task>, blocks_for(cut.results * cut.pieces, kTall), args);
  if (cut.pieces > 1) launch(call, &fold_pieces<Task>, blocks_for(cut.results, kTall), args);
}

}  // namespace folds
}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
