// Compiles the writes at indices for the device.
#include <tapedeck/kernels/cuda/movement/combine.inl>
