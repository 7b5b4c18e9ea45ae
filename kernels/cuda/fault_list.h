// The faults that kernels find on the device, with the texts that the CPU kernels report for them. The numbers are 1, 2, ... in
// this order.
#pragma once

// clang-format off
#define TAPEDECK_DEVICE_FAULTS(X)                                                \
  X(index_out_of_range, "index out of range")                                    \
  X(label_out_of_range, "label out of range")                                    \
  X(division_by_zero, "integer division by zero")                                \
  X(not_a_probability, "not a probability, at element")                          \
  X(negative_power_of_zero, "integer zero to a negative power")                  \
  X(negative_shift, "negative shift count")                                      \
  X(number_outside_bins, "number outside the bins")                              \
  X(another_count, "another number of elements than promised")                   \
  X(bad_class_probability, "probability negative or not finite, of class")       \
  X(probabilities_add_to_zero, "probabilities add to zero, in row")              \
  X(too_few_classes, "too few classes of nonzero probability for samples without replacement") \
  X(index_outside_window, "index outside the window")                            \
  X(index_outside_plane, "index outside the plane")
// clang-format on
