// RUN: canonicalize
// The same weight is one value; what nobody uses is gone.
module attributes {tpu.state = "top_f32"} {
  func.func @once(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = "top.weight"() {dtype = "f32", role = "gain", shape = array<i64: 3>} : () -> tensor<3xf32>
    %1 = "top.weight"() {dtype = "f32", role = "gain", shape = array<i64: 3>} : () -> tensor<3xf32>
    %2 = "top.weight"() {dtype = "f32", role = "other", shape = array<i64: 3>} : () -> tensor<3xf32>
    %dead = "top.mul"(%x, %2) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    %3 = "top.mul"(%x, %0) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    %4 = "top.mul"(%3, %1) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    return %4 : tensor<2x3xf32>
  }
}
// CHECK:      func.func @once(%[[X:.*]]: tensor<2x3xf32>)
// CHECK-NEXT:   %[[W:.*]] = "top.weight"() {dtype = "f32", role = "gain"
// CHECK-NEXT:   %[[A:.*]] = "top.mul"(%[[X]], %[[W]])
// CHECK-NEXT:   %[[B:.*]] = "top.mul"(%[[A]], %[[W]])
// CHECK-NEXT:   return %[[B]]
