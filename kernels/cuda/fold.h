// Folds many sequences of numbers, each to one result. A Task says where the numbers are and what becomes of a total:
//
//     using A                      the accumulator, plain data
//     A identity()                 changes no other accumulator
//     A combine(A a, A b)          where a comes before b
//     auto place(result)           for at(); looks at no element unless the sequence has one
//     A at(place, i)               element i of the sequence
//     void finish(result, A)       writes the result
//
// A task may also know packs, which are kWidth neighbouring elements in 16 aligned bytes:
//
//     kWidth, Packed               the elements of a pack, and what pack() loads
//     Packed pack(place, i)        elements i, i + 1, ... of the sequence, or element i of this and the next sequences
//     A of_pack(place, packed, e, i)   what at() would give for element e of the pack; `i` is that of its first element
//
// A sequence is cut into pieces, by the number of results, the length and the direction. A piece is dealt to 32 lanes of 4
// accumulators: element i goes to lane i % 32, accumulator i / 32 % 4. The accumulators of a lane are folded in pairs, then
// lane l with lane l + 16, l + 8, ..., and then the pieces. Two kernels do this:
//
//     along    a warp folds a piece; its lanes read neighbouring elements
//     across   a block folds the same piece of 32 sequences; its lanes read neighbouring sequences. Of the 8 threads of a
//     sequence
//              each has 4 lanes.
//
// Two more kernels do the same with packs. Along a sequence, a pack is folded in pairs and then takes the place of an element.
// Across, a lane folds kWidth sequences, and thread y of 8 takes the elements y, y + 8, ... of a piece. So the bits of a result
// depend on the sizes and on how the operands lie, and on nothing else.
#pragma once

#include <tapedeck/kernels/cuda/reduce.h>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace folds {

inline constexpr int kAccumulators = 4;
inline constexpr std::int64_t kSlots = kAccumulators * kWarp;
inline constexpr int kTall = kThreads / kWarp;  // threads of one sequence, where a block folds across

// Sequences are cut where their number alone would not fill the device: into warps along, and into blocks across.
struct Pieces {
  static constexpr std::int64_t kEnoughWarps = 4096, kEnoughBlocks = 1024, kShort = 1024;
  static constexpr std::int64_t kColumns = 128, kManyTiles = 256, kShortColumn = 128, kStepAcross = 32;
  std::int64_t results = 0, length = 0, piece = 0, pieces = 1;

  Pieces(std::int64_t n_results, std::int64_t n, bool across = false) : results(n_results), length(n), piece(n) {
    const std::int64_t tiles = across ? (results - 1) / kColumns + 1 : results;
    if (results == 0 || length <= (across && tiles < kManyTiles ? kShortColumn : kShort)) return;
    const std::int64_t shortest = across ? kStepAcross : kShort, step = across ? kStepAcross : kSlots;
    std::int64_t wanted = (across ? kEnoughBlocks : kEnoughWarps) / tiles;
    if (wanted > length / shortest) wanted = length / shortest;
    if (wanted < 2) return;
    piece = ((length - 1) / wanted / step + 1) * step;
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

// The fold of the elements of one pack, in pairs.
template <class Task, class Place>
TAPEDECK_DEVICE typename Task::A fold_pack(const Task& task, const Place& place, const typename Task::Packed& x,
                                           std::int64_t i) {
  typename Task::A of[Task::kWidth];
  TAPEDECK_UNROLLED
  for (int e = 0; e < Task::kWidth; ++e) of[e] = task.of_pack(place, x, e, i);
  TAPEDECK_UNROLLED
  for (int step = 1; step < Task::kWidth; step *= 2) {
    TAPEDECK_UNROLLED
    for (int e = 0; e + step < Task::kWidth; e += 2 * step) of[e] = task.combine(of[e], of[e + step]);
  }
  return of[0];
}

template <class Task>
TAPEDECK_KERNEL void fold_along_packs(const FoldArgs<Task> f) {
  using A = typename Task::A;
  constexpr std::int64_t kStep = kWarp * Task::kWidth;
  const std::int64_t items = f.cut.results * f.cut.pieces, step = static_cast<std::int64_t>(gridDim.x) * kTall;
  for (std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * kTall + warp_of_block(); item < items; item += step) {
    const std::int64_t result = item / f.cut.pieces, piece = item % f.cut.pieces, end = f.end_of(piece);
    const auto place = f.task.place(result);
    A acc[kAccumulators];
    for (A& a : acc) a = f.task.identity();
    std::int64_t at = piece * f.cut.piece + lane_of_warp() * Task::kWidth;
    for (; at + (kAccumulators - 1) * kStep < end; at += kAccumulators * kStep) {
      typename Task::Packed x[kAccumulators];
      TAPEDECK_UNROLLED
      for (int k = 0; k < kAccumulators; ++k) x[k] = f.task.pack(place, at + k * kStep);
      TAPEDECK_UNROLLED
      for (int k = 0; k < kAccumulators; ++k) acc[k] = f.task.combine(acc[k], fold_pack(f.task, place, x[k], at + k * kStep));
    }
    TAPEDECK_ROLLED
    for (; at < end; at += kStep) acc[0] = f.task.combine(acc[0], fold_pack(f.task, place, f.task.pack(place, at), at));
    const A lane = f.task.combine(f.task.combine(acc[0], acc[1]), f.task.combine(acc[2], acc[3]));
    const A total = warp_fold(lane, Combines<Task>{f.task});
    if (lane_of_warp() == 0) f.deliver(result, piece, total);
  }
}

// The fold of one thread of kWidth neighbouring sequences, over the elements first, first + 8, ... of a piece.
template <class Task, class Place>
TAPEDECK_DEVICE void fold_columns(const Task& task, const Place& place, std::int64_t first, std::int64_t end,
                                  typename Task::A (&total)[Task::kWidth]) {
  constexpr int kFlight = sizeof(typename Task::Packed) > 16 ? 4 : 8;
  const auto add = [&](const typename Task::Packed& x, std::int64_t i) {
    TAPEDECK_UNROLLED
    for (int e = 0; e < Task::kWidth; ++e) total[e] = task.combine(total[e], task.of_pack(place, x, e, i));
  };
  std::int64_t at = first;
  for (; at + (kFlight - 1) * kTall < end; at += kFlight * kTall) {
    typename Task::Packed x[kFlight];
    TAPEDECK_UNROLLED
    for (int m = 0; m < kFlight; ++m) x[m] = task.pack(place, at + m * kTall);
    TAPEDECK_UNROLLED
    for (int m = 0; m < kFlight; ++m) add(x[m], at + m * kTall);
  }
  TAPEDECK_ROLLED
  for (; at < end; at += kTall) add(task.pack(place, at), at);
}

template <class Task>
TAPEDECK_KERNEL void fold_across_packs(const FoldArgs<Task> f) {
  using A = typename Task::A;
  constexpr int kWidth = Task::kWidth;
  TAPEDECK_SHARED A shared[kTall][kWidth][kWarp];
  const unsigned x = lane_of_warp(), y = warp_of_block();
  const std::int64_t tiles = (f.cut.results - 1) / (kWarp * kWidth) + 1;
  for (std::int64_t job = blockIdx.x; job < tiles * f.cut.pieces; job += gridDim.x) {
    const std::int64_t result = (job % tiles * kWarp + x) * kWidth, piece = job / tiles;
    A total[kWidth];
    for (A& t : total) t = f.task.identity();
    if (result < f.cut.results) fold_columns(f.task, f.task.place(result), piece * f.cut.piece + y, f.end_of(piece), total);
    sync_block();  // the previous job may still be read
    TAPEDECK_UNROLLED
    for (int e = 0; e < kWidth; ++e) shared[y][e][x] = total[e];
    sync_block();
    for (int e = static_cast<int>(y); e < kWidth; e += kTall) {
      if (result >= f.cut.results) continue;
      A of[kTall];
      TAPEDECK_UNROLLED
      for (int t = 0; t < kTall; ++t) of[t] = shared[t][e][x];
      TAPEDECK_UNROLLED
      for (int gap = kTall / 2; gap > 0; gap /= 2)
        for (int t = 0; t < gap; ++t) of[t] = f.task.combine(of[t], of[t + gap]);
      f.deliver(result + e, piece, of[0]);
    }
  }
}

// The second stage: a block folds the totals of the pieces of one sequence.
template <class Task>
TAPEDECK_KERNEL void fold_pieces(const FoldArgs<Task> f) {
  using A = typename Task::A;
  for (std::int64_t result = blockIdx.x; result < f.cut.results; result += gridDim.x) {
    const A* const partial = f.partial + result * f.cut.pieces;
    A own[kAccumulators];
    for (A& a : own) a = f.task.identity();
    for (std::int64_t p = threadIdx.x; p < f.cut.pieces; p += kAccumulators * kThreads) {
      TAPEDECK_UNROLLED
      for (int k = 0; k < kAccumulators; ++k)
        if (p + k * kThreads < f.cut.pieces) own[k] = f.task.combine(own[k], partial[p + k * kThreads]);
    }
    const A mine = f.task.combine(f.task.combine(own[0], own[1]), f.task.combine(own[2], own[3]));
    const A total = BlockTeam::fold(mine, Combines<Task>{f.task});
    if (threadIdx.x == 0) f.task.finish(result, total);
  }
}

template <class Task>
void fold_the_pieces(const KernelCall& call, const FoldArgs<Task>& args) {
  if (args.cut.pieces > 1) launch(call, &fold_pieces<Task>, blocks_for(args.cut.results, 1), args);
}

// Folds all sequences of the task, along or across. `partial` has cut.bytes(sizeof(Task::A)) bytes, aligned for A.
template <class Task>
void fold_lengthwise(const KernelCall& call, const Task& task, const Pieces& cut, void* partial) {
  if (cut.results == 0) return;
  const FoldArgs<Task> args{task, cut, static_cast<typename Task::A*>(partial)};
  launch(call, &fold_along<Task>, blocks_for(cut.results * cut.pieces, kTall), args);
  fold_the_pieces(call, args);
}
template <class Task>
void fold(const KernelCall& call, const Task& task, const Pieces& cut, bool across, void* partial) {
  if (!across) return fold_lengthwise(call, task, cut, partial);
  if (cut.results == 0) return;
  const FoldArgs<Task> args{task, cut, static_cast<typename Task::A*>(partial)};
  launch(call, &fold_across<Task>, blocks_for(((cut.results - 1) / kWarp + 1) * cut.pieces, 1), args);
  fold_the_pieces(call, args);
}

// Does the same where every pack is aligned and lies in one piece, or, across, in one row of kWidth results.
template <class Task>
void fold_along_by_packs(const KernelCall& call, const Task& task, const Pieces& cut, void* partial) {
  if (cut.results == 0) return;
  const FoldArgs<Task> args{task, cut, static_cast<typename Task::A*>(partial)};
  launch(call, &fold_along_packs<Task>, blocks_for(cut.results * cut.pieces, kTall), args);
  fold_the_pieces(call, args);
}
template <class Task>
void fold_across_by_packs(const KernelCall& call, const Task& task, const Pieces& cut, void* partial) {
  if (cut.results == 0) return;
  const FoldArgs<Task> args{task, cut, static_cast<typename Task::A*>(partial)};
  launch(call, &fold_across_packs<Task>, blocks_for(((cut.results - 1) / (kWarp * Task::kWidth) + 1) * cut.pieces, 1), args);
  fold_the_pieces(call, args);
}

}  // namespace folds
}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
