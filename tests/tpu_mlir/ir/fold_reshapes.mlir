// RUN: fold-reshapes
// A chain of renamed axes becomes one reshape.
module attributes {tpu.state = "top_f32"} {
  func.func @chain(%x: tensor<1x4x8xf32>) -> tensor<1x32x1xf32> {
    %0 = "top.reshape"(%x) {shape = array<i64: 4, -1>} : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
    %1 = "top.reshape"(%0) {shape = array<i64: 32>} : (tensor<4x8xf32>) -> tensor<32xf32>
    %2 = "top.unsqueeze"(%1) {axes = array<i64: 0, -1>} : (tensor<32xf32>) -> tensor<1x32x1xf32>
    return %2 : tensor<1x32x1xf32>
  }
}
// CHECK:      func.func @chain(%[[X:.*]]: tensor<1x4x8xf32>) -> tensor<1x32x1xf32> {
// CHECK-NEXT:   %[[R:.*]] = "top.reshape"(%[[X]]) {shape = array<i64: 1, 32, 1>}
// CHECK-NEXT:   return %[[R]]
// -----
// RUN: fold-reshapes
// What changes nothing goes; what reorders elements stays.
module attributes {tpu.state = "top_f32"} {
  func.func @identity(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
    %0 = "top.reshape"(%x) {shape = array<i64: 2, 3>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %1 = "top.permute"(%0) {order = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %2 = "top.permute"(%1) {order = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    return %2 : tensor<3x2xf32>
  }
}
// CHECK:      func.func @identity(%[[X:.*]]: tensor<2x3xf32>) -> tensor<3x2xf32> {
// CHECK-NEXT:   %[[P:.*]] = "top.permute"(%[[X]]) {order = array<i64: 1, 0>}
// CHECK-NEXT:   return %[[P]]
// -----
// RUN: fold-reshapes
// A reshape whose input is used elsewhere too is shortened, and the other use keeps its value.
module attributes {tpu.state = "top_f32"} {
  func.func @shared(%x: tensor<2x3xf32>) -> (tensor<6xf32>, tensor<3x2xf32>) {
    %0 = "top.reshape"(%x) {shape = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
    %1 = "top.reshape"(%0) {shape = array<i64: 3, 2>} : (tensor<6xf32>) -> tensor<3x2xf32>
    return %0, %1 : tensor<6xf32>, tensor<3x2xf32>
  }
}
// CHECK:      func.func @shared(%[[X:.*]]: tensor<2x3xf32>)
// CHECK-DAG:    %[[A:.*]] = "top.reshape"(%[[X]]) {shape = array<i64: 6>}
// CHECK-DAG:    %[[B:.*]] = "top.reshape"(%[[X]]) {shape = array<i64: 3, 2>}
// CHECK:        return %[[A]], %[[B]]
// -----
// RUN: fold-reshapes
// Two permutes are one, and none when the second undoes the first.
module attributes {tpu.state = "top_f32"} {
  func.func @permutes(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<3x2x4xf32>) {
    %0 = "top.permute"(%x) {order = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
    %1 = "top.permute"(%0) {order = array<i64: 2, 0, 1>} : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
    %2 = "top.permute"(%0) {order = array<i64: 0, 2, 1>} : (tensor<3x4x2xf32>) -> tensor<3x2x4xf32>
    return %1, %2 : tensor<2x3x4xf32>, tensor<3x2x4xf32>
  }
}
// CHECK:      func.func @permutes(%[[X:.*]]: tensor<2x3x4xf32>)
// CHECK-NEXT:   %[[P:.*]] = "top.permute"(%[[X]]) {order = array<i64: 1, 0, 2>}
// CHECK-NEXT:   return %[[X]], %[[P]]
