// Compiles unfold and fold for the device.
#include <tapedeck/kernels/cuda/movement/unfold.inl>
