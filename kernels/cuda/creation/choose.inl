// Draws that choose among numbers: permutations and classes. Each row is the work of one thread, because each choice depends on
// the ones before; the bits equal those of the CPU kernels.
#pragma once

#include <tapedeck/kernels/attrs/random.h>
#include <tapedeck/kernels/cuda/creation/stream.h>
#include <tapedeck/kernels/cuda/device_fault.h>
#include <tapedeck/kernels/cuda/elements.h>

#include <limits>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {

// ---- randperm ----

struct Permutation {
  const std::int64_t* rng;
  std::uint64_t path_hash;
  std::int64_t n;
  void* out;
  DType dtype;
};

// The shuffle of Fisher and Yates in its inside-out form: element i swaps with a random place among the first i + 1.
TAPEDECK_KERNEL void randperm_kernel(const Permutation p) {
  const RandomStream stream = device_stream(p.rng, p.path_hash);
  PhiloxBlock block{};
  for (std::int64_t i = 0; i < p.n; ++i) {
    if (i % 2 == 0) block = stream.block(static_cast<std::uint64_t>(i / 2));
    const std::uint64_t bound = static_cast<std::uint64_t>(i) + 1;
    const auto place = static_cast<std::int64_t>(i % 2 == 0 ? below(block.word[0], block.word[1], bound)
                                                            : below(block.word[2], block.word[3], bound));
    store<Integer>(p.out, p.dtype, i, load<Integer>(p.out, p.dtype, place));
    store<Integer>(p.out, p.dtype, place, i);
  }
}

void randperm(const KernelCall& call) {
  const auto& a = call.attributes<RandpermAttrs>();
  const View& out = call.outputs[0];
  if (a.n == 0) return;
  launch<Permutation>(call, &randperm_kernel, Launch{.threads = 1},
                      {call.inputs[0].as<std::int64_t>(), fnv1a64(a.path.view()), a.n, out.data, out.dtype});
}

// ---- multinomial ----

struct Choice {
  const std::int64_t* rng;
  std::uint64_t path_hash;
  const void* p;  // probabilities [rows, classes]
  DType dtype;
  std::int64_t rows, classes, samples;
  bool replacement;
  double* keys;  // [rows, classes]: sums of probabilities, or times
  std::int64_t* out;
  KernelFault* fault;
};

TAPEDECK_DEVICE double chance_of(const Choice& c, std::int64_t at) {
  return c.dtype == DType::f64 ? load<double>(c.p, c.dtype, at) : static_cast<double>(load<Real>(c.p, c.dtype, at));
}

// Writes the running sums of a row. False, with a fault, if the row holds no valid probabilities.
TAPEDECK_DEVICE bool add_up(const Choice& c, std::int64_t row, double* sums) {
  double total = 0;
  for (std::int64_t k = 0; k < c.classes; ++k) {
    const double p = chance_of(c, row * c.classes + k);
    if (!(p >= 0 && p < std::numeric_limits<double>::infinity())) {
      report_fault(c.fault, Fault::bad_class_probability, k);
      return false;
    }
    sums[k] = total += p;
  }
  if (!(total > 0)) report_fault(c.fault, Fault::probabilities_add_to_zero, row);
  return total > 0;
}

TAPEDECK_DEVICE double draw_f64(const RandomStream& stream, std::int64_t i) {
  const PhiloxBlock b = stream.block(static_cast<std::uint64_t>(i) / 2);
  return i % 2 == 0 ? uniform_f64(b.word[0], b.word[1]) : uniform_f64(b.word[2], b.word[3]);
}

// The first class whose sum is above the drawn number; the last class if none is.
TAPEDECK_DEVICE void choose_again(const Choice& c, const RandomStream& stream, std::int64_t row, const double* sums) {
  const double total = sums[c.classes - 1];
  for (std::int64_t i = 0; i < c.samples; ++i) {
    const double at = draw_f64(stream, row * c.samples + i) * total;
    std::int64_t first = 0, count = c.classes;
    while (count > 0) {
      const std::int64_t half = count / 2;
      const bool above = at < sums[first + half];
      first = above ? first : first + half + 1;
      count = above ? half : count - half - 1;
    }
    c.out[row * c.samples + i] = first < c.classes ? first : c.classes - 1;
  }
}

// Draws classes in the order of random times; the time of a class has an exponential distribution whose rate is the class's
// probability. Equal times go by the number of the class.
TAPEDECK_DEVICE void choose_once(const Choice& c, const RandomStream& stream, std::int64_t row, double* times) {
  for (std::int64_t k = 0; k < c.classes; ++k) {
    const double wait = -log_f64(1 - draw_f64(stream, row * c.classes + k)), p = chance_of(c, row * c.classes + k);
    times[k] = p > 0 ? wait / p : std::numeric_limits<double>::infinity();
  }
  std::int64_t before = -1;
  for (std::int64_t i = 0; i < c.samples; ++i) {
    std::int64_t next = -1;
    for (std::int64_t k = 0; k < c.classes; ++k) {
      const bool later = before < 0 || times[k] > times[before] || (times[k] == times[before] && k > before);
      if (later && (next < 0 || times[k] < times[next])) next = k;
    }
    before = next;
    c.out[row * c.samples + i] = next;
    if (!(chance_of(c, row * c.classes + next) > 0)) report_fault(c.fault, Fault::too_few_classes, c.samples);
  }
}

TAPEDECK_KERNEL void multinomial_kernel(const Choice c) {
  const RandomStream stream = device_stream(c.rng, c.path_hash);
  for (std::int64_t row = thread_index(); row < c.rows; row += thread_count()) {
    double* const keys = c.keys + row * c.classes;
    for (std::int64_t i = 0; i < c.samples; ++i) c.out[row * c.samples + i] = 0;
    if (!add_up(c, row, keys)) continue;
    if (c.replacement)
      choose_again(c, stream, row, keys);
    else
      choose_once(c, stream, row, keys);
  }
}

std::int64_t multinomial_workspace(const KernelCall& call) {
  return call.inputs[0].numel() * static_cast<std::int64_t>(sizeof(double));
}

void multinomial(const KernelCall& call) {
  const auto& a = call.attributes<MultinomialAttrs>();
  const View& p = call.inputs[0];
  const std::int64_t rows = p.rank == 2 ? p.sizes[0] : 1;
  const Choice c{call.inputs[1].as<std::int64_t>(),
                 fnv1a64(a.path.view()),
                 p.data,
                 p.dtype,
                 rows,
                 p.sizes[p.rank - 1],
                 a.samples,
                 a.replacement,
                 static_cast<double*>(call.workspace),
                 call.outputs[0].as<std::int64_t>(),
                 call.fault};
  launch<Choice>(call, &multinomial_kernel, for_items(rows), c);
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
