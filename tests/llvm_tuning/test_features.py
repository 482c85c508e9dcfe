from llvm_tuning.evidence.features import ir_features

IR = b"""define i32 @f(ptr %a) {
  %1 = load i8, ptr %a, align 1
  %2 = sext i8 %1 to i32
  %3 = load <4 x float>, ptr %a, align 4
  br i1 %c, label %x, label %y
  %4 = fadd float %p, %q
  call void @g()
  store i32 %2, ptr %a
}
"""


def test_each_kind_of_line_is_counted_once():
    features = ir_features(IR)
    assert (features["functions"], features["branches"], features["calls"], features["stores"]) == (1, 1, 1, 1)
    assert (features["loads"], features["narrow_loads"], features["vector_loads"], features["widenings"]) == (
        2,
        1,
        1,
        1,
    )


def test_no_text_gives_zeros():
    assert set(ir_features(b"").values()) == {0}
