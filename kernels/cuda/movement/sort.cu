// Compiles the sorts for the device.
#include <tapedeck/kernels/cuda/movement/sort.inl>
