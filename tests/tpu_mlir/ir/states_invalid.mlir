// RUN: fold-reshapes
// EXPECT: module: tpu.state is lowered, wanted top_f32
module attributes {tpu.state = "lowered"} {
  func.func @f(%x: tensor<2x3xf32>) {
    
    return
  }
}
// -----
// RUN: fold-reshapes
// EXPECT: "q": tpu.active does not belong to a module that is not lowered yet
module attributes {tpu.state = "top_f32"} {
  func.func @f(%x: tensor<2x3xf32>) {
    %r = "tpu.active"(%x) {mode = "silu"} : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("q")
    return
  }
}
// -----
// RUN: canonicalize{state=lowered}
// EXPECT: "q": top.silu was not lowered
module attributes {tpu.state = "lowered"} {
  func.func @f(%x: tensor<2x3xf32>) {
    %r = "top.silu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("q")
    return
  }
}
// -----
// RUN: canonicalize{state=lowered}
// EXPECT: "q": tpu.load belongs to a grouped module
module attributes {tpu.state = "lowered"} {
  func.func @f(%x: tensor<2x3xf32>) {
    %r = "tpu.load"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("q")
    return
  }
}
// -----
// RUN: canonicalize{state=grouped}
// EXPECT: "q": tpu.store stands outside a group
module attributes {tpu.state = "grouped"} {
  func.func @f(%x: tensor<2x3xf32>) {
    %r = "tpu.store"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("q")
    return
  }
}
// -----
// RUN: canonicalize{state=addressed}
// EXPECT: "q": tpu.active has no address
module attributes {tpu.state = "addressed"} {
  func.func @f(%x: tensor<2x3xf32>) {
    %r = "tpu.active"(%x) {mode = "silu"} : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("q")
    return
  }
}
// -----
// RUN: canonicalize
// EXPECT: "q": arith.negf is not an op of the top or tpu dialect
module attributes {tpu.state = "top_f32"} {
  func.func @f(%x: tensor<2x3xf32>) {
    %c = arith.negf %x : tensor<2x3xf32> loc("q")
    return
  }
}
