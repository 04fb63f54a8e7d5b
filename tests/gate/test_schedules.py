"""What the loads beside the pool's cost a schedule that is good: docs/gate.md, counted on few campaigns."""

from tests.gate.schedules import ROWS, counted

from paceline.core import ArmOutcome

FEW = 500


def test_a_ramp_beside_the_thresholds_hardly_costs_a_good_schedule_its_promotion() -> None:
    """And noise alone rejects none of them."""
    alone, _, with_ramp, *_ = (counted(row, FEW) for row in ROWS[:3])
    assert alone[ArmOutcome.PROMOTABLE] >= 0.9
    assert with_ramp[ArmOutcome.PROMOTABLE] >= alone[ArmOutcome.PROMOTABLE] - 0.05
    assert alone[ArmOutcome.REJECTED] == with_ramp[ArmOutcome.REJECTED] == 0


def test_a_schedule_at_the_tolerance_on_the_ramp_is_not_promoted() -> None:
    assert counted(ROWS[4], FEW)[ArmOutcome.PROMOTABLE] <= 0.05
