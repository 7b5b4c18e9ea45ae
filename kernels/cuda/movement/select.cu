// Compiles the reads at indices for the device.
#include <tapedeck/kernels/cuda/movement/select.inl>
