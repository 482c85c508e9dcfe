// RUN: lower-to-tpu{chip=bm1684x mode=bf16}
// Every pattern keeps its types, so casts stand around every op.
module attributes {tpu.state = "top_f32"} {
  func.func @casts(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
    %0 = "top.input"(%x) : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %1 = "top.weight"() {dtype = "f32", role = "norm.weight", shape = array<i64: 8>} : () -> tensor<8xf32>
    %2 = "top.rms_norm"(%0, %1) {eps = 1.0e-06 : f64} : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
    %3 = "top.silu"(%2) : (tensor<2x8xf32>) -> tensor<2x8xf32>
    return %3 : tensor<2x8xf32>
  }
}
// CHECK:      module attributes {tpu.chip = "bm1684x", tpu.mode = "bf16", tpu.state = "lowered"}
// CHECK:        %[[X:.*]] = "tpu.input"
// CHECK-NEXT:   %[[W:.*]] = "tpu.weight"() {{.*}}dtype = "f32"
// CHECK-NEXT:   %[[XB:.*]] = "tpu.cast"(%[[X]]) {to = "bf16"}
// CHECK-NEXT:   %[[WB:.*]] = "tpu.cast"(%[[W]]) {to = "bf16"}
// CHECK-NEXT:   %[[N:.*]] = "tpu.rms_norm"(%[[XB]], %[[WB]]) {{.*}} -> tensor<2x8xbf16>
// CHECK-NEXT:   %[[NF:.*]] = "tpu.cast"(%[[N]]) {to = "f32"}
// CHECK-NEXT:   %[[S:.*]] = "tpu.active"(%[[NF]]) {mode = "silu"} : (tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK-NEXT:   return %[[S]]
// -----
// RUN: lower-to-tpu{chip=bm1684x mode=bf16}, fold-casts, strip-io-casts
// The same, with only the casts that mean something: into f32 for the activation.
module attributes {tpu.state = "top_f32"} {
  func.func @folded(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
    %0 = "top.input"(%x) : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %1 = "top.weight"() {dtype = "f32", role = "norm.weight", shape = array<i64: 8>} : () -> tensor<8xf32>
    %2 = "top.rms_norm"(%0, %1) {eps = 1.0e-06 : f64} : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
    %3 = "top.silu"(%2) : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %4 = "top.add"(%3, %0) : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    return %4 : tensor<2x8xf32>
  }
}
// CHECK:      func.func @folded(%[[A:.*]]: tensor<2x8xbf16>) -> tensor<2x8xbf16>
// CHECK-NEXT:   %[[X:.*]] = "tpu.input"(%[[A]]) : (tensor<2x8xbf16>) -> tensor<2x8xbf16>
// CHECK-NEXT:   %[[W:.*]] = "tpu.weight"() {{.*}}dtype = "bf16"
// CHECK-NEXT:   %[[N:.*]] = "tpu.rms_norm"(%[[X]], %[[W]])
// CHECK-NEXT:   %[[NF:.*]] = "tpu.cast"(%[[N]]) {to = "f32"}
// CHECK-NEXT:   %[[S:.*]] = "tpu.active"(%[[NF]])
// CHECK-NEXT:   %[[SB:.*]] = "tpu.cast"(%[[S]]) {to = "bf16"}
// CHECK-NEXT:   %[[Y:.*]] = "tpu.add"(%[[SB]], %[[X]]) : (tensor<2x8xbf16>, tensor<2x8xbf16>) -> tensor<2x8xbf16>
// CHECK-NEXT:   return %[[Y]]
// -----
// RUN: lower-to-tpu{chip=bm1684x mode=w4f16 group_size=32}, fold-casts, strip-io-casts
// A constant on the right is packed; one on the left is not, and logits are not rounded to 16 bits.
module attributes {tpu.state = "top_f32"} {
  func.func @packed(%x: tensor<1x64xf32>) -> tensor<1x1xsi32> {
    %0 = "top.input"(%x) : (tensor<1x64xf32>) -> tensor<1x64xf32>
    %1 = "top.weight"() {dtype = "f32", role = "up.weight", shape = array<i64: 64, 64>} : () -> tensor<64x64xf32>
    %2 = "top.matmul"(%0, %1) {left_transpose = false, operandSegmentSizes = array<i32: 1, 1, 0>, right_transpose = true} : (tensor<1x64xf32>, tensor<64x64xf32>) -> tensor<1x64xf32>
    %3 = "top.weight"() {dtype = "f32", role = "head.weight", shape = array<i64: 96, 64>} : () -> tensor<96x64xf32>
    %4 = "top.matmul"(%3, %2) {left_transpose = false, operandSegmentSizes = array<i32: 1, 1, 0>, right_transpose = true} : (tensor<96x64xf32>, tensor<1x64xf32>) -> tensor<96x1xf32>
    %5 = "top.reshape"(%4) {shape = array<i64: 1, 96>} : (tensor<96x1xf32>) -> tensor<1x96xf32>
    %6:2 = "top.topk"(%5) {axis = 1 : i64, k = 1 : i64, largest = true} : (tensor<1x96xf32>) -> (tensor<1x1xf32>, tensor<1x1xsi32>)
    return %6#1 : tensor<1x1xsi32>
  }
}
// CHECK:      func.func @packed(%{{.*}}: tensor<1x64xf16>) -> tensor<1x1xsi32>
// CHECK:        %[[Q:.*]] = "tpu.weight"() {bits = 4 : i64, dtype = "ui8", group_size = 32 : i64, part = "packed", role = "up.weight", shape = array<i64: 64, 32>
// CHECK-NEXT:   %[[S:.*]] = "tpu.weight"() {{.*}}dtype = "f16"{{.*}}part = "scale", role = "up.weight", shape = array<i64: 64, 2>
// CHECK-NEXT:   %[[Z:.*]] = "tpu.weight"() {{.*}}dtype = "ui8"{{.*}}part = "zero", role = "up.weight", shape = array<i64: 64, 2>
// CHECK-NEXT:   %[[Y:.*]] = "tpu.a16_matmul"(%{{.*}}, %[[Q]], %[[S]], %[[Z]]) {{.*}}out = "f16"
// CHECK-NEXT:   %[[H:.*]] = "tpu.weight"() {{.*}}dtype = "f16"{{.*}}part = "value", role = "head.weight"
// CHECK-NEXT:   %[[L:.*]] = "tpu.matmul"(%[[H]], %[[Y]]) {{.*}}out = "f32"
// CHECK-NEXT:   %[[R:.*]] = "tpu.reshape"(%[[L]]) {{.*}} -> tensor<1x96xf32>
// CHECK-NEXT:   %[[T:.*]]:2 = "tpu.topk"(%[[R]])
// CHECK-NEXT:   return %[[T]]#1
