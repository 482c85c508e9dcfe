// EXPECT: "q": tpu.add: operands mix element types bf16, f32; cast one of them
func.func @f(%x: tensor<2x3xf32>, %y: tensor<2x3xbf16>) {
  %r = "tpu.add"(%x, %y) : (tensor<2x3xf32>, tensor<2x3xbf16>) -> tensor<2x3xf32> loc("q")
  return
}
// -----
// EXPECT: "q": tpu.matmul: attribute out is bf16, wanted si32 for integer operands
func.func @f(%x: tensor<2x3xsi8>) {
  %r = "tpu.matmul"(%x, %x) {left_transpose = false, operandSegmentSizes = array<i32: 1, 1, 0>, out = "bf16", right_transpose = true} : (tensor<2x3xsi8>, tensor<2x3xsi8>) -> tensor<2x2xbf16> loc("q")
  return
}
// -----
// EXPECT: "q": tpu.matmul: x is tensor<2x3xsi8>, w is tensor<2x3xf16>: integers multiply with integers
func.func @f(%x: tensor<2x3xsi8>, %w: tensor<2x3xf16>) {
  %r = "tpu.matmul"(%x, %w) {left_transpose = false, operandSegmentSizes = array<i32: 1, 1, 0>, out = "si32", right_transpose = true} : (tensor<2x3xsi8>, tensor<2x3xf16>) -> tensor<2x2xsi32> loc("q")
  return
}
// -----
// EXPECT: "q": tpu.active: attribute mode is 'swish', wanted one of silu, gelu, gelu_tanh, relu, sigmoid, tanh, rsqrt
func.func @f(%x: tensor<2x3xf32>) {
  %r = "tpu.active"(%x) {mode = "swish"} : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("q")
  return
}
// -----
// EXPECT: "q": tpu.requant_int: multipliers has 2 entries, wanted 1 or 3 (axis -1)
func.func @f(%x: tensor<2x3xsi32>) {
  %r = "tpu.requant_int"(%x) {axis = -1 : i64, multipliers = array<i64: 1, 2>, rounding = "half_up", shifts = array<i64: 1>, to = "si8", zero_point = 0 : i64} : (tensor<2x3xsi32>) -> tensor<2x3xsi8> loc("q")
  return
}
// -----
// EXPECT: "q": tpu.lut: table 2x3 has 6 entries, wanted 256
func.func @f(%x: tensor<2x3xsi8>) {
  %r = "tpu.lut"(%x, %x) : (tensor<2x3xsi8>, tensor<2x3xsi8>) -> tensor<2x3xsi8> loc("q")
  return
}
// -----
// EXPECT: "q": tpu.weight: part zero cannot have elements of f16
func.func @f(%x: tensor<2x3xf32>) {
  %r = "tpu.weight"() {bits = 4 : i64, dtype = "f16", group_size = 64 : i64, part = "zero", role = "w", shape = array<i64: 4>, symmetric = false} : () -> tensor<4xf16> loc("q")
  return
}
// -----
// EXPECT: "q": tpu.weight: bits, group_size and symmetric belong to the parts of a quantised weight
func.func @f(%x: tensor<2x3xf32>) {
  %r = "tpu.weight"() {bits = 4 : i64, dtype = "f16", group_size = 0 : i64, part = "value", role = "w", shape = array<i64: 4>, symmetric = false} : () -> tensor<4xf16> loc("q")
  return
}
// -----
// EXPECT: "q": tpu.group: the region ends in tpu.active, not in tpu.yield
func.func @f(%x: tensor<2x3xf32>) {
  %r = "tpu.group"() ({
    %i = "tpu.active"(%x) {mode = "silu"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  }) {sections = array<i64: 1, 1, 1, 1>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> tensor<2x3xf32> loc("q")
  return
}
// -----
// EXPECT: "q": tpu.group: outs is tensor<3x2xf32>, inferred tensor<2x3xf32>
func.func @f(%x: tensor<2x3xf32>) {
  %r = "tpu.group"() ({
    "tpu.yield"(%x) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3xf32>) -> ()
  }) {sections = array<i64: 1, 1, 1, 1>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> tensor<3x2xf32> loc("q")
  return
}
// -----
// EXPECT: "q": tpu.group: sections (1, 0, 1, 1) must be four positive numbers
func.func @f(%x: tensor<2x3xf32>) {
  %r = "tpu.group"() ({
    "tpu.yield"(%x) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3xf32>) -> ()
  }) {sections = array<i64: 1, 0, 1, 1>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> tensor<2x3xf32> loc("q")
  return
}
