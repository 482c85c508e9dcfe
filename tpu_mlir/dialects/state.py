"""Where a module stands on its way to the chip, and what must hold there.

A module carries its state, chip and mode as attributes. `check` proves that the IR is what the state says; every pass
names the state it needs and the state it leaves (see `transforms.passes`).
"""

from enum import StrEnum

from core.errors import BadInput
from tpu_mlir.dialects import adapter
from tpu_mlir.dialects.adapter import Diagnostic, Function, IrError, Module


class State(StrEnum):
    """The stages of a module, in order."""

    TOP_F32 = "top_f32"
    LOWERED = "lowered"
    GROUPED = "grouped"
    ADDRESSED = "addressed"

    @property
    def rank(self) -> int:
        """Place in the order."""
        return list(State).index(self)


def state_of(module: Module) -> State:
    """Return the state a module says it is in.

    Raises:
        BadInput: no state, or an unknown one.
    """
    found = adapter.module_attr(module, "tpu.state")
    if found not in list(State):
        raise BadInput(
            f"The module's attribute tpu.state is {found!r}.",
            f"It must be one of {', '.join(State)}: write it, or compile anew.",
        )
    return State(str(found))


def set_state(module: Module, state: State) -> None:
    """Write a module's state."""
    adapter.set_module_attr(module, "tpu.state", state.value)


def check(module: Module, state: State) -> None:
    """Prove that a module is in a state.

    Raises:
        IrError: the module says another state, an op does not belong there, or a value has the wrong type; every
            offender is named with its location.
    """
    found = state_of(module)
    if found is not state:
        raise IrError(
            "The module is in another state.", [Diagnostic("module", f"tpu.state is {found}, wanted {state}")]
        )
    adapter.verify(module)
    faults = [fault for function in adapter.functions(module) for fault in _FAULTS[state](function)]
    if faults:
        raise IrError(f"The module is not in the state {state}.", faults)


def _top_faults(function: Function) -> list[Diagnostic]:
    faults = []
    for call in adapter.calls(function):
        if not call.spec.name.startswith("top."):
            faults.append(
                Diagnostic(call.where, f"{call.spec.name} does not belong to a module that is not lowered yet")
            )
    return faults


def _lowered_faults(function: Function) -> list[Diagnostic]:
    faults = []
    for call in adapter.calls(function):
        if not call.spec.name.startswith("tpu."):
            faults.append(Diagnostic(call.where, f"{call.spec.name} was not lowered"))
        elif call.spec.region or call.spec.name in _ONLY_GROUPED:
            faults.append(Diagnostic(call.where, f"{call.spec.name} belongs to a grouped module"))
    return faults


def _grouped_faults(function: Function) -> list[Diagnostic]:
    faults = []
    for call in adapter.calls(function):
        if not call.spec.name.startswith("tpu."):
            faults.append(Diagnostic(call.where, f"{call.spec.name} was not lowered"))
        if call.spec.name in _ONLY_GROUPED:
            faults.append(Diagnostic(call.where, f"{call.spec.name} stands outside a group"))
        if call.spec.region:
            names = [inner.spec.name for inner in adapter.calls(call)]
            faults += [Diagnostic(call.where, f"{name} inside tpu.group") for name in names if name in _NEVER_GROUPED]
    return faults


def _addressed_faults(function: Function) -> list[Diagnostic]:
    faults = _grouped_faults(function)
    for call in adapter.calls(function):
        if any(adapter.address_of(value) is None for value in call.results):
            faults.append(Diagnostic(call.where, f"{call.spec.name} has no address"))
    return faults


_ONLY_GROUPED = ("tpu.load", "tpu.store")
_NEVER_GROUPED = ("tpu.input", "tpu.weight", "tpu.group")
_FAULTS = {
    State.TOP_F32: _top_faults,
    State.LOWERED: _lowered_faults,
    State.GROUPED: _grouped_faults,
    State.ADDRESSED: _addressed_faults,
}
