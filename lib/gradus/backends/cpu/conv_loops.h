// Plain loops for the three products of a convolution: float64, and the tests' reference for oneDNN. Any
// strides.
#pragma once
#include "kernels/conv.cuh"

namespace gradus::cpu {

template <class T>
void conv_loops(const ConvArgs& args);
template <class T>
void conv_grad_input_loops(const ConvGradInputArgs& args);
template <class T>
void conv_grad_weight_loops(const ConvGradWeightArgs& args);

}  // namespace gradus::cpu
