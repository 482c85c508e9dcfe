// EXPECT: "q": top.matmul: inner lengths differ: 3 in x 2x3, 2 in w 2x3 (left_transpose = false, right_transpose = false)
func.func @f(%x: tensor<2x3xf32>) {
  %r = "top.matmul"(%x, %x) {left_transpose = false, operandSegmentSizes = array<i32: 1, 1, 0>, right_transpose = false} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.matmul: bias 2x1x2 is larger than the product 2x2
func.func @f(%x: tensor<2x3xf32>, %b: tensor<2x1x2xf32>) {
  %r = "top.matmul"(%x, %x, %b) {left_transpose = false, operandSegmentSizes = array<i32: 1, 1, 1>, right_transpose = true} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x1x2xf32>) -> tensor<2x2xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.matmul: attribute operandSegmentSizes is missing
func.func @f(%x: tensor<2x3xf32>) {
  %r = "top.matmul"(%x, %x) {left_transpose = false, right_transpose = true} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.softmax: axis 2 is out of range for 2x3 (rank 2)
func.func @f(%x: tensor<2x3xf32>) {
  %r = "top.softmax"(%x) {axis = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.softmax: attribute axis is missing
func.func @f(%x: tensor<2x3xf32>) {
  %r = "top.softmax"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.softmax: attribute axis is 'last', wanted int
func.func @f(%x: tensor<2x3xf32>) {
  %r = "top.softmax"(%x) {axis = "last"} : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.softmax: unknown attribute axes; the op has axis
func.func @f(%x: tensor<2x3xf32>) {
  %r = "top.softmax"(%x) {axes = 1 : i64, axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.add: x 2x3 and y 2 do not broadcast: axis -1 has 3 and 2
func.func @f(%x: tensor<2x3xf32>, %b: tensor<2xf32>) {
  %r = "top.add"(%x, %b) : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.silu: x is tensor<2x3xbf16>, wanted elements of f32
func.func @f(%x: tensor<2x3xbf16>) {
  %r = "top.silu"(%x) : (tensor<2x3xbf16>) -> tensor<2x3xbf16> loc("q")
  return
}
// -----
// EXPECT: "q": top.silu: tensor<?x3xf32> has a dynamic shape
func.func @f(%x: tensor<?x3xf32>) {
  %r = "top.silu"(%x) : (tensor<?x3xf32>) -> tensor<?x3xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.silu: tensor<2x3xf64> has an element type other than f32, f16, bf16, si8, ui8, si32
func.func @f(%x: tensor<2x3xf64>) {
  %r = "top.silu"(%x) : (tensor<2x3xf64>) -> tensor<2x3xf64> loc("q")
  return
}
// -----
// EXPECT: "q": top.gelu: attribute form is 'fast', wanted one of erf, tanh
func.func @f(%x: tensor<2x3xf32>) {
  %r = "top.gelu"(%x) {form = "fast"} : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.reshape: 2x3 has 6 elements, 4x2 has 8
func.func @f(%x: tensor<2x3xf32>) {
  %r = "top.reshape"(%x) {shape = array<i64: 4, 2>} : (tensor<2x3xf32>) -> tensor<4x2xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.reshape: out is tensor<3x2xf32>, inferred tensor<6xf32>
func.func @f(%x: tensor<2x3xf32>) {
  %r = "top.reshape"(%x) {shape = array<i64: -1>} : (tensor<2x3xf32>) -> tensor<3x2xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.rms_norm: gamma 2 does not fit the last axis of x 2x3
func.func @f(%x: tensor<2x3xf32>, %g: tensor<2xf32>) {
  %r = "top.rms_norm"(%x, %g) {eps = 1.0e-6 : f64} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.rms_norm: attribute eps is -1.0, wanted zero or more
func.func @f(%x: tensor<2x3xf32>, %g: tensor<3xf32>) {
  %r = "top.rms_norm"(%x, %g) {eps = -1.0 : f64} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.attention: 3 query heads do not divide by 2 key/value heads
func.func @f(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x2x4xf32>) {
  %r = "top.attention"(%q, %k, %k) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, scale = 1.0 : f64} : (tensor<1x2x3x4xf32>, tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>) -> tensor<1x2x12xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.attention: the scores 1x2x2x2 and mask 1x1x2x5 do not broadcast: axis -1 has 2 and 5
func.func @f(%q: tensor<1x2x2x4xf32>, %m: tensor<1x1x2x5xf32>) {
  %r = "top.attention"(%q, %q, %q, %m) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, scale = 1.0 : f64} : (tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>, tensor<1x1x2x5xf32>) -> tensor<1x2x8xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.attention: tile 2x3 is not a square of at least 2x2
func.func @f(%q: tensor<1x2x2x4xf32>, %m: tensor<2x3xf32>) {
  %r = "top.attention"(%q, %q, %q, %m) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 1>, scale = 1.0 : f64} : (tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>, tensor<2x3xf32>) -> tensor<1x2x8xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.rope: dim 3 is odd
func.func @f(%q: tensor<1x2x2x3xf32>, %s: tensor<1x2x1x3xf32>) {
  %r = "top.rope"(%q, %s, %s) {mode = "interleaved"} : (tensor<1x2x2x3xf32>, tensor<1x2x1x3xf32>, tensor<1x2x1x3xf32>) -> tensor<1x2x2x3xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.a16_matmul: groups of 3 do not divide the inner length 8
func.func @f(%x: tensor<2x8xf32>, %w: tensor<5x4xui8>, %s: tensor<5x2xf32>) {
  %r = "top.a16_matmul"(%x, %w, %s) {bits = 4 : i64, group_size = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<2x8xf32>, tensor<5x4xui8>, tensor<5x2xf32>) -> tensor<2x5xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.a16_matmul: scale is 5x2, wanted 5x1 for w 5x4
func.func @f(%x: tensor<2x8xf32>, %w: tensor<5x4xui8>, %s: tensor<5x2xf32>) {
  %r = "top.a16_matmul"(%x, %w, %s) {bits = 4 : i64, group_size = 8 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<2x8xf32>, tensor<5x4xui8>, tensor<5x2xf32>) -> tensor<2x5xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.concat: operands 2x3 and 3x3 differ outside axis 1
func.func @f(%x: tensor<2x3xf32>, %y: tensor<3x3xf32>) {
  %r = "top.concat"(%x, %y) {axis = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x6xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.insert: rows 2..3 lie outside axis 0 of 2x3
func.func @f(%x: tensor<2x3xf32>, %y: tensor<1x3xf32>) {
  %r = "top.insert"(%x, %y) {axis = 0 : i64, offset = 2 : i64} : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.topk: k 4 is not within axis 1 of 2x3
func.func @f(%x: tensor<2x3xf32>) {
  %r:2 = "top.topk"(%x) {axis = 1 : i64, k = 4 : i64, largest = true} : (tensor<2x3xf32>) -> (tensor<2x4xf32>, tensor<2x4xsi32>) loc("q")
  return
}
// -----
// EXPECT: "q": top.conv: 3 channels of x, 2 x 1 groups of w
func.func @f(%x: tensor<1x3x4x4xf32>, %w: tensor<8x2x3x3xf32>) {
  %r = "top.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x3x4x4xf32>, tensor<8x2x3x3xf32>) -> tensor<1x8x2x2xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.max_pool: a window of 5 does not fit into 4 + 0 of padding
func.func @f(%x: tensor<1x3x4x4xf32>) {
  %r = "top.max_pool"(%x) {kernel = array<i64: 5, 2>, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x3x4x4xf32>) -> tensor<1x3x1x3xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.batch_norm: mean 2 does not fit the 3 channels of x
func.func @f(%x: tensor<2x3xf32>, %g: tensor<3xf32>, %m: tensor<2xf32>) {
  %r = "top.batch_norm"(%x, %g, %g, %m, %g) {eps = 1.0e-5 : f64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<3xf32>) -> tensor<2x3xf32> loc("q")
  return
}
// -----
// EXPECT: "q": top.weight: out is tensor<3xf32>, inferred tensor<4xf32>
func.func @f(%x: tensor<2x3xf32>) {
  %r = "top.weight"() {dtype = "f32", role = "w", shape = array<i64: 4>} : () -> tensor<3xf32> loc("q")
  return
}
